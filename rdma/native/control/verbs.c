#define _GNU_SOURCE
#include "verbs.h"

#include "block_record.h"
#include "handover.h"
#include "record.h"
#include "views.h"

#include <string.h>

/* Each verb: the result, or NULL and a problem. */

static json_t *do_attach(struct guests *guests, json_t *request, struct problem *problem)
{
    struct guest_settings settings;
    if (settings_from_json(&settings, request, problem) != 0) {
        return NULL;
    }
    settings.detaching = settings.switched = false;
    settings.keeper = (struct keeper){0};
    if (!guests_allow(guests, &settings, problem)) {
        return NULL;
    }
    return guests_attach(guests, &settings, problem) == 0 ? guest_to_json(guests_find(guests, settings.guest)) : NULL;
}

/* Find the guest that a request names, along with its other member, if it has one. */
static struct guest *named(struct guests *guests, json_t *request, const char *member, json_int_t *value,
                           struct problem *problem)
{
    const char *name;
    json_error_t error;
    int bad = member == NULL
                  ? json_unpack_ex(request, &error, JSON_STRICT, "{s:s}", "guest", &name)
                  : json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:I}", "guest", &name, member, value);
    if (bad) {
        problem_set(problem, "%s", error.text);
        return NULL;
    }
    struct guest *guest = guests_find(guests, name);
    if (guest == NULL) {
        problem_set(problem, "guest %.36s is not attached", name);
    }
    return guest;
}

/* As `named`, of a block device. */
static struct block *named_block(struct guests *guests, json_t *request, const char *member, json_int_t *value,
                                 struct problem *problem)
{
    const char *name;
    json_error_t error;
    int bad = member == NULL
                  ? json_unpack_ex(request, &error, JSON_STRICT, "{s:s}", "block", &name)
                  : json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:I}", "block", &name, member, value);
    if (bad) {
        problem_set(problem, "%s", error.text);
        return NULL;
    }
    struct block *block = blocks_find(&guests->blocks, name);
    if (block == NULL) {
        problem_set(problem, "block %.36s is not exported", name);
    }
    return block;
}

static json_t *do_limit(struct guests *guests, json_t *request, struct problem *problem)
{
    json_int_t limit_mib = 0;
    struct guest *guest = named(guests, request, "limit_mib", &limit_mib, problem);
    if (guest == NULL) {
        return NULL;
    }
    if (limit_mib < 1 || limit_mib > MOST_LIMIT_MIB) {
        problem_set(problem, "limit_mib: 1 to %d, not %lld", MOST_LIMIT_MIB, (long long)limit_mib);
        return NULL;
    }
    return guests_set_limit(guests, guest, (uint32_t)limit_mib, problem) == 0 ? guest_to_json(guest) : NULL;
}

static json_t *do_detach(struct guests *guests, json_t *request, struct problem *problem)
{
    struct guest *guest = named(guests, request, NULL, NULL, problem);
    return guest != NULL && guests_detach(guests, guest, problem) == 0 ? guest_to_json(guest) : NULL;
}

static json_t *do_hand_over(struct guests *guests, json_t *request, struct problem *problem)
{
    json_t *name = json_incref(json_object_get(request, "guest"));
    struct guest *guest = json_is_string(name) ? guests_find(guests, json_string_value(name)) : NULL;
    json_object_del(request, "guest");
    json_decref(name);
    if (guest == NULL) {
        problem_set(problem, "guest: one that is attached is needed");
        return NULL;
    }
    return handover_offer(guests, guest, request, problem) == 0 ? guest_to_json(guest) : NULL;
}

static json_t *do_take_over(struct guests *guests, json_t *request, struct problem *problem)
{
    struct guest *guest = named(guests, request, NULL, NULL, problem);
    return guest != NULL && handover_take(guest, problem) == 0 ? guest_to_json(guest) : NULL;
}

static json_t *do_switched(struct guests *guests, json_t *request, struct problem *problem)
{
    struct guest *guest = named(guests, request, NULL, NULL, problem);
    return guest != NULL && handover_switch(guests, guest, problem) == 0 ? guest_to_json(guest) : NULL;
}

static json_t *do_withdraw(struct guests *guests, json_t *request, struct problem *problem)
{
    struct guest *guest = named(guests, request, NULL, NULL, problem);
    return guest != NULL && handover_withdraw(guest, problem) == 0 ? guest_to_json(guest) : NULL;
}

static json_t *do_forget(struct guests *guests, json_t *request, struct problem *problem)
{
    struct guest *guest = named(guests, request, NULL, NULL, problem);
    return guest != NULL && handover_forget(guest, problem) == 0 ? guest_to_json(guest) : NULL;
}

static json_t *do_view(struct guests *guests, json_t *request, struct problem *problem)
{
    if (json_object_get(request, "block") != NULL) {
        struct block *block = named_block(guests, request, NULL, NULL, problem);
        return block == NULL ? NULL : block_to_json(block);
    }
    if (json_object_size(request) > 0) {
        struct guest *guest = named(guests, request, NULL, NULL, problem);
        return guest == NULL ? NULL : guest_to_json(guest);
    }
    json_t *list = json_array(), *blocks = json_array();
    for (uint32_t at = 0; at < guests->count; at++) {
        json_array_append_new(list, guest_to_json(guests->list[at]));
    }
    for (uint32_t at = 0; at < guests->blocks.count; at++) {
        json_array_append_new(blocks, block_to_json(guests->blocks.list[at]));
    }
    return json_pack("{s:o, s:o, s:o}", "guests", list, "blocks", blocks, "links", kept_links_to_json(&guests->links));
}

static int check_lender(const char *name, struct problem *problem)
{
    size_t size = strlen(name);
    return size > 0 && size < LENDER_NAME_BYTES
               ? 0
               : problem_set(problem, "lender: a name of 1 to %d bytes is needed", LENDER_NAME_BYTES - 1);
}

static int check_deadline(int deadline_ms, struct problem *problem)
{
    return deadline_ms >= LEAST_DEADLINE_MS && deadline_ms <= MOST_DEADLINE_MS
               ? 0
               : problem_set(problem, "deadline_ms: %d to %d, not %d", LEAST_DEADLINE_MS, MOST_DEADLINE_MS, deadline_ms);
}

static json_t *links_view(const struct guests *guests)
{
    return json_pack("{s:o}", "links", kept_links_to_json(&guests->links));
}

static json_t *do_connect(struct guests *guests, json_t *request, struct problem *problem)
{
    const char *lender;
    json_t *ticket;
    int deadline_ms = DEADLINE_MS;
    json_error_t error;
    if (json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:o, s?:i}", "lender", &lender, "ticket", &ticket,
                       "deadline_ms", &deadline_ms) != 0) {
        problem_set(problem, "%s", error.text);
        return NULL;
    }
    if (check_lender(lender, problem) != 0 || check_deadline(deadline_ms, problem) != 0 ||
        kept_links_connect(&guests->links, lender, ticket, (uint32_t)deadline_ms, problem) != 0) {
        return NULL;
    }
    return links_view(guests);
}

static json_t *do_disconnect(struct guests *guests, json_t *request, struct problem *problem)
{
    const char *lender;
    json_error_t error;
    if (json_unpack_ex(request, &error, JSON_STRICT, "{s:s}", "lender", &lender) != 0) {
        problem_set(problem, "%s", error.text);
        return NULL;
    }
    return kept_links_disconnect(&guests->links, lender, problem) == 0 ? links_view(guests) : NULL;
}

/* What a request about a lender has in it; ticket and deadline only where they are asked for. */
struct lender_request {
    struct guest *guest; /* whose it is to be, or a block's */
    struct block *block;
    const char *lender;
    json_t *list, *ticket;
    int deadline_ms;
};

/* Find the guest or the block device. */
static int find_borrower(struct guests *guests, const char *kind, const char *name, struct lender_request *found,
                         struct problem *problem)
{
    bool is_block = strcmp(kind, "block") == 0;
    found->block = is_block ? blocks_find(&guests->blocks, name) : NULL;
    found->guest = is_block ? NULL : guests_find(guests, name);
    if (found->block == NULL && found->guest == NULL) {
        return problem_set(problem, "%s %.36s is not %s", kind, name, is_block ? "exported" : "attached");
    }
    return 0;
}

/* Unpack it, and find whose lender it is. */
static int named_lender(struct guests *guests, json_t *request, struct lender_request *found, bool leases,
                        struct problem *problem)
{
    const char *kind = json_object_get(request, "block") != NULL ? "block" : "guest", *name;
    json_error_t error;
    *found = (struct lender_request){.deadline_ms = DEADLINE_MS};
    int bad = leases ? json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:s, s:o, s?:o, s?:i}", kind, &name, "lender",
                                      &found->lender, "keys", &found->list, "ticket", &found->ticket, "deadline_ms",
                                      &found->deadline_ms)
                     : json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:s, s:o}", kind, &name, "lender",
                                      &found->lender, "numbers", &found->list);
    if (bad || !json_is_array(found->list)) {
        return problem_set(problem, "%s", bad ? error.text : "a list of keys, or of their numbers, is needed");
    }
    if (check_lender(found->lender, problem) != 0 || check_deadline(found->deadline_ms, problem) != 0) {
        return -1;
    }
    return find_borrower(guests, kind, name, found, problem);
}

static json_t *borrower_to_json(const struct lender_request *found)
{
    return found->block != NULL ? block_to_json(found->block) : guest_to_json(found->guest);
}

static json_t *do_lease(struct guests *guests, json_t *request, struct problem *problem)
{
    struct lender_request found;
    if (named_lender(guests, request, &found, true, problem) != 0) {
        return NULL;
    }
    struct lease_request wanted = {.lender = found.lender,
                                   .kept = kept_links_find(&guests->links, found.lender),
                                   .ticket = found.ticket,
                                   .keys = found.list,
                                   .deadline_ms = (uint32_t)found.deadline_ms,
                                   .hands = found.guest != NULL && found.guest->settings.incoming};
    int failed = found.block != NULL ? block_lease(found.block, &wanted, problem)
                                     : guest_lease(found.guest, &wanted, problem);
    return failed ? NULL : borrower_to_json(&found);
}

static json_t *do_leave(struct guests *guests, json_t *request, struct problem *problem)
{
    struct lender_request found;
    json_t *each;
    size_t at;
    if (named_lender(guests, request, &found, false, problem) != 0) {
        return NULL;
    }
    json_array_foreach (found.list, at, each) {
        uint64_t number = (uint64_t)json_integer_value(each); /* where it is not in use, it is left already */
        (void)(found.block != NULL ? block_leave(found.block, found.lender, number)
                                   : guest_leave(found.guest, found.lender, number));
    }
    return borrower_to_json(&found);
}

static json_t *do_export(struct guests *guests, json_t *request, struct problem *problem)
{
    struct block_settings settings;
    if (block_settings_from_json(&settings, request, problem) != 0) {
        return NULL;
    }
    if (!guests_allow_block(guests, &settings, problem)) {
        return NULL;
    }
    settings.ending = false;
    settings.keeper = (struct keeper){0};
    return blocks_export(&guests->blocks, &settings, problem) == 0
               ? block_to_json(blocks_find(&guests->blocks, settings.block))
               : NULL;
}

static json_t *do_resize(struct guests *guests, json_t *request, struct problem *problem)
{
    json_int_t mib = 0;
    struct block *block = named_block(guests, request, "mib", &mib, problem);
    if (block == NULL) {
        return NULL;
    }
    if (mib < 1 || mib > block->settings.most_mib || !block->serves) {
        problem_set(problem, "mib: 1 to %u, of a device that is served", block->settings.most_mib);
        return NULL;
    }
    return blocks_resize(&guests->blocks, block, (uint32_t)mib, problem) == 0 ? block_to_json(block) : NULL;
}

static json_t *do_unexport(struct guests *guests, json_t *request, struct problem *problem)
{
    struct block *block = named_block(guests, request, NULL, NULL, problem);
    return block != NULL && blocks_unexport(&guests->blocks, block, problem) == 0 ? json_object() : NULL;
}

static const struct verb {
    const char *name;
    json_t *(*carry_out)(struct guests *guests, json_t *request, struct problem *problem);
} verbs[] = {{"attach", do_attach}, {"limit", do_limit},   {"lease", do_lease},
             {"leave", do_leave},   {"detach", do_detach}, {"view", do_view},
             {"export", do_export}, {"resize", do_resize}, {"unexport", do_unexport},
             {"connect", do_connect}, {"disconnect", do_disconnect}, {"hand_over", do_hand_over},
             {"take_over", do_take_over}, {"switched", do_switched}, {"withdraw", do_withdraw}, {"forget", do_forget}};

static json_t *carry_out(struct guests *guests, json_t *request, struct problem *problem)
{
    json_t *verb = json_incref(json_object_get(request, "verb"));
    const char *name = verb == NULL ? NULL : json_string_value(verb);
    json_t *result = NULL;
    problem_set(problem, "verb: one of attach, limit, lease, leave, detach, view, export, resize, unexport, connect, "
                         "disconnect, hand_over, take_over, switched, withdraw, forget is needed");
    for (size_t at = 0; name != NULL && at < sizeof verbs / sizeof *verbs; at++) {
        if (strcmp(verbs[at].name, name) == 0) {
            json_object_del(request, "verb");
            result = verbs[at].carry_out(guests, request, problem);
            break;
        }
    }
    json_decref(verb);
    return result;
}

char *verbs_answer(struct guests *guests, const char *line, size_t size)
{
    struct problem problem = {""};
    json_error_t error;
    json_t *request = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);
    json_t *id = request == NULL ? NULL : json_incref(json_object_get(request, "id"));
    json_t *result = NULL;
    if (!json_is_object(request)) {
        problem_set(&problem, "a request is one JSON object on a line; %s",
                    request == NULL ? error.text : "this is none");
    } else {
        json_object_del(request, "id");
        result = carry_out(guests, request, &problem);
    }
    json_t *answer =
        result != NULL ? json_pack("{s:o}", "result", result) : json_pack("{s:{s:s}}", "error", "text", problem.text);
    if (id != NULL) {
        json_object_set(answer, "id", id);
    }
    char *text = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    json_decref(id);
    json_decref(request);
    return text;
}
