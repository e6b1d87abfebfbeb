/* Tiers in lenders' memory, for tests: one request, a JSON object, on each line of standard input, one answer on each of
 * standard output.
 *
 * {"connect": TICKET, "deadline_ms": N}; {"open": KEY}, whose tier is used from then on;
 * {"write": SLOTS, "seed": N} and {"read": SLOTS, "seed": N}: in one call, what `page` makes of the seed and each slot
 * ("adjacent": the first slot and a count); answers: `error` (an errno), `wrong` (pages that are not that), `ms`.
 */
#include "../../native/links/link.h"
#include "../../native/links/wire.h"
#include "../../native/store/sealer.h"
#include "checks.h"

#include <stdbool.h>
#include <string.h>

enum { LINE_BYTES = 65536, MOST_TIERS = 16, NS_PER_MS = 1000000 };

static struct link *opened;
static struct tier *tiers[MOST_TIERS];
static uint32_t count;
static uint8_t pages[TIER_MOST_SLOTS * PAGE_BYTES], wanted[PAGE_BYTES];

static json_t *answer_of(const struct problem *problem)
{
    return problem->text[0] == '\0' ? json_object() : json_pack("{s:s}", "problem", problem->text);
}

static json_t *do_connect(json_t *request, json_t *ticket)
{
    struct problem problem = {""};
    opened = link_connect("lender1", ticket, (uint32_t)json_integer_value(json_object_get(request, "deadline_ms")), &problem);
    return answer_of(&problem);
}

static json_t *do_open(json_t *json)
{
    struct problem problem = {""};
    struct key key = {.json = json,
                      .number = (uint64_t)json_integer_value(json_object_get(json, "number")),
                      .slots = (uint64_t)json_integer_value(json_object_get(json, "size_bytes")) / PAGE_BYTES};
    CHECK(count < MOST_TIERS);
    tiers[count] = link_open(opened, &key, &problem);
    count += tiers[count] != NULL;
    return answer_of(&problem);
}

/* The content of a page: words that no other slot and seed have. */
static void page(uint8_t *made, uint64_t slot, uint64_t seed)
{
    for (uint64_t at = 0; at < PAGE_BYTES / 8; at++) {
        uint64_t word = (seed * 1000003 + slot) * 512 + at;
        memcpy(made + at * 8, &word, 8);
    }
}

static json_t *do_access(json_t *request, json_t *list, bool writes)
{
    struct tier *tier = tiers[json_integer_value(json_object_get(request, "tier"))];
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(request, "seed"));
    bool adjacent = json_is_true(json_object_get(request, "adjacent"));
    uint32_t slots[TIER_MOST_SLOTS], wrong = 0;
    uint64_t first = (uint64_t)json_integer_value(json_array_get(list, 0));
    uint32_t used = (uint32_t)(adjacent ? (size_t)json_integer_value(json_array_get(list, 1)) : json_array_size(list));
    CHECK(used <= TIER_MOST_SLOTS);
    memset(pages, 0, sizeof pages);
    for (uint32_t at = 0; at < used; at++) {
        slots[at] = adjacent ? (uint32_t)first + at : (uint32_t)json_integer_value(json_array_get(list, at));
        if (writes) {
            page(pages + (size_t)at * PAGE_BYTES, slots[at], seed);
        }
    }
    uint64_t begun = wire_now_ns();
    int error = adjacent ? writes ? tier->type->write(tier, first, used, pages) : tier->type->read(tier, first, used, pages)
                : writes ? tier_scatter(tier, slots, used, pages)
                         : tier_gather(tier, slots, used, pages);
    uint64_t ms = (wire_now_ns() - begun) / NS_PER_MS;
    for (uint32_t at = 0; at < used && !writes; at++) {
        page(wanted, slots[at], seed);
        wrong += memcmp(wanted, pages + (size_t)at * PAGE_BYTES, PAGE_BYTES) != 0;
    }
    return json_pack("{s:i, s:i, s:I}", "error", error, "wrong", (int)wrong, "ms", (json_int_t)ms);
}

static json_t *carry_out(json_t *request)
{
    json_t *what;
    if ((what = json_object_get(request, "connect")) != NULL) {
        return do_connect(request, what);
    }
    if ((what = json_object_get(request, "open")) != NULL) {
        return do_open(what);
    }
    what = json_object_get(request, "write");
    return do_access(request, what != NULL ? what : json_object_get(request, "read"), what != NULL);
}

int main(void)
{
    static char line[LINE_BYTES];
    while (fgets(line, sizeof line, stdin) != NULL) {
        json_t *request = json_loads(line, 0, NULL);
        CHECK(request != NULL);
        json_t *answer = carry_out(request);
        json_dumpf(answer, stdout, JSON_COMPACT);
        puts("");
        fflush(stdout);
        json_decref(answer);
        json_decref(request);
    }
    for (uint32_t at = 0; at < count; at++) {
        tiers[at]->type->close(tiers[at]);
        free(tiers[at]);
    }
    if (opened != NULL) {
        link_end(opened);
    }
    return 0;
}
