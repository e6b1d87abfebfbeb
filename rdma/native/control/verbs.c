#define _GNU_SOURCE
#include "verbs.h"

#include "record.h"

#include <string.h>

static json_t *latencies_to_json(const struct latencies *latencies)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "count", (json_int_t)latency_count(latencies), "p50_ns",
                     (json_int_t)latency_percentile(latencies, 50), "p99_ns",
                     (json_int_t)latency_percentile(latencies, 99), "worst_ns",
                     (json_int_t)atomic_load_explicit(&latencies->worst_ns, memory_order_relaxed));
}

static json_t *counters_to_json(const struct counters *counters)
{
    json_t *object = json_object();
#define X(name) json_object_set_new(object, #name, json_integer((json_int_t)atomic_load(&counters->name)));
    EACH_COUNTER(X)
#undef X
    return object;
}

static const char *state_of(const struct guest *guest)
{
    return !guest->serves ? "failed" : guest->settings.detaching ? "detaching" : "serving";
}

static json_t *leases_to_json(const struct guest *guest)
{
    static const char *const states[] = {"active", "leaving", "lost", "left"};
    json_t *list = json_array();
    for (const struct lender *lender = guest->lenders; lender != NULL; lender = lender->next) {
        for (const struct window *window = lender->windows; window != NULL; window = window->next) {
            const struct lease *lease = window->lease;
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "lender", lender->link->name,
                                            "driver", lender->link->type->driver, "number", (json_int_t)window->number,
                                            "pages", (json_int_t)lease->slots, "used", (json_int_t)(lease->slots - atomic_load(&lease->free_count)),
                                            "state", states[atomic_load(&lease->state)]));
        }
    }
    return list;
}

static json_t *store_to_json(const struct page_store *store)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "lender_writes", (json_int_t)atomic_load(&store->lender_writes),
                     "lender_reads", (json_int_t)atomic_load(&store->lender_reads), "mirror_reads",
                     (json_int_t)atomic_load(&store->mirror_reads), "corrupt",
                     (json_int_t)atomic_load(&store->corrupt));
}

static json_t *guest_to_json(const struct guest *guest)
{
    json_t *object = settings_to_json(&guest->settings);
    json_object_set_new(object, "state", json_string(state_of(guest)));
    json_object_set_new(object, "problem", json_string(guest->problem.text));
    if (guest->serves) {
        const struct pager *pager = &guest->pager;
        json_object_set_new(object, "pages", json_integer(pager->pages));
        json_object_set_new(object, "resident_pages", json_integer(atomic_load(&pager->resident_pages)));
        json_object_set_new(object, "evicted_pages", json_integer(atomic_load(&pager->evicted_pages)));
        json_object_set_new(object, "counters", counters_to_json(&pager->counters));
        json_object_set_new(object, "store", store_to_json(&guest->store));
        json_object_set_new(object, "leases", leases_to_json(guest));
        json_object_set_new(object, "service", latencies_to_json(&pager->service));
        json_object_set_new(object, "eviction", latencies_to_json(&pager->eviction));
    }
    return object;
}

/* Each verb: the result, or NULL and a problem. */

static json_t *do_attach(struct guests *guests, json_t *request, struct problem *problem)
{
    struct guest_settings settings;
    if (settings_from_json(&settings, request, problem) != 0) {
        return NULL;
    }
    settings.detaching = false;
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

static json_t *do_view(struct guests *guests, json_t *request, struct problem *problem)
{
    if (json_object_size(request) > 0) {
        struct guest *guest = named(guests, request, NULL, NULL, problem);
        return guest == NULL ? NULL : guest_to_json(guest);
    }
    json_t *list = json_array();
    for (uint32_t at = 0; at < guests->count; at++) {
        json_array_append_new(list, guest_to_json(guests->list[at]));
    }
    return json_pack("{s:o}", "guests", list);
}

/* What a request about a lender of a guest has in it; ticket and deadline only where they are asked for. */
struct lender_request {
    const char *guest, *lender;
    json_t *list, *ticket;
    int deadline_ms;
};

/* Unpack it, and find the guest. */
static struct guest *named_lender(struct guests *guests, json_t *request, struct lender_request *found, bool leases,
                                  struct problem *problem)
{
    json_error_t error;
    *found = (struct lender_request){.deadline_ms = DEADLINE_MS};
    int bad = leases ? json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:s, s:o, s:o, s?:i}", "guest",
                                      &found->guest, "lender", &found->lender, "keys", &found->list, "ticket",
                                      &found->ticket, "deadline_ms", &found->deadline_ms)
                     : json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:s, s:o}", "guest", &found->guest,
                                      "lender", &found->lender, "numbers", &found->list);
    if (bad || !json_is_array(found->list) || strlen(found->lender) >= LENDER_NAME_BYTES) {
        problem_set(problem, "%s", bad ? error.text : "a list, and a name of up to 127 bytes, are needed");
        return NULL;
    }
    if (found->deadline_ms < LEAST_DEADLINE_MS || found->deadline_ms > MOST_DEADLINE_MS) {
        problem_set(problem, "deadline_ms: %d to %d, not %d", LEAST_DEADLINE_MS, MOST_DEADLINE_MS, found->deadline_ms);
        return NULL;
    }
    struct guest *guest = guests_find(guests, found->guest);
    if (guest == NULL) {
        problem_set(problem, "guest %.36s is not attached", found->guest);
    }
    return guest;
}

static json_t *do_lease(struct guests *guests, json_t *request, struct problem *problem)
{
    struct lender_request found;
    struct guest *guest = named_lender(guests, request, &found, true, problem);
    bool leased = guest != NULL && guest_lease(guest, found.lender, found.ticket, found.list,
                                               (uint32_t)found.deadline_ms, problem) == 0;
    return leased ? guest_to_json(guest) : NULL;
}

static json_t *do_leave(struct guests *guests, json_t *request, struct problem *problem)
{
    struct lender_request found;
    json_t *number;
    size_t at;
    struct guest *guest = named_lender(guests, request, &found, false, problem);
    if (guest == NULL) {
        return NULL;
    }
    json_array_foreach (found.list, at, number) {
        (void)guest_leave(guest, found.lender, (uint64_t)json_integer_value(number)); /* else it is left already */
    }
    return guest_to_json(guest);
}

static const struct verb {
    const char *name;
    json_t *(*carry_out)(struct guests *guests, json_t *request, struct problem *problem);
} verbs[] = {{"attach", do_attach}, {"limit", do_limit},   {"lease", do_lease},
             {"leave", do_leave},   {"detach", do_detach}, {"view", do_view}};

static json_t *carry_out(struct guests *guests, json_t *request, struct problem *problem)
{
    json_t *verb = json_incref(json_object_get(request, "verb"));
    const char *name = verb == NULL ? NULL : json_string_value(verb);
    json_t *result = NULL;
    problem_set(problem, "verb: one of attach, limit, lease, leave, detach, view is needed");
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
