#define _GNU_SOURCE
#include "views.h"

#include "block_record.h"
#include "handover.h"
#include "record.h"

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

static json_t *leases_to_json(const struct lender *lender)
{
    static const char *const states[] = {"active", "leaving", "lost", "left", "handed"};
    json_t *list = json_array();
    for (; lender != NULL; lender = lender->next) {
        for (const struct window *window = lender->windows; window != NULL; window = window->next) {
            const struct lease *lease = window->lease;
            json_int_t used = (json_int_t)(lease->slots - atomic_load(&lease->free_count));
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "lender", lender->link->name, "driver",
                                lender->link->type->driver, "number", (json_int_t)window->number, "pages",
                                (json_int_t)lease->slots, "used", used, "state", states[atomic_load(&lease->state)]));
        }
    }
    return list;
}

static json_t *store_to_json(const struct page_store *store)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "handed", (json_int_t)atomic_load(&store->handed),
                     "mirror_copied", (json_int_t)atomic_load(&store->mirror_copied), "handed_copied", (json_int_t)atomic_load(&store->handed_copied), "copied_resident",
                     (json_int_t)atomic_load(&store->copied_resident), "copied_stored",
                     (json_int_t)atomic_load(&store->copied_stored), "lender_writes", (json_int_t)atomic_load(&store->lender_writes),
                     "lender_reads", (json_int_t)atomic_load(&store->lender_reads), "mirror_reads",
                     (json_int_t)atomic_load(&store->mirror_reads), "corrupt",
                     (json_int_t)atomic_load(&store->corrupt), "sunk", (json_int_t)atomic_load(&store->leases.sunk));
}

json_t *guest_to_json(const struct guest *guest)
{
    json_t *object = settings_to_json(&guest->settings);
    json_object_set_new(object, "state", json_string(state_of(guest)));
    json_object_set_new(object, "problem", json_string(guest->problem.text));
    json_object_set_new(object, "handover", handover_to_json(guest)); /* nothing, where there is none */
    if (guest->serves) {
        const struct pager *pager = &guest->pager;
        json_object_set_new(object, "pages", json_integer(pager->pages));
        json_object_set_new(object, "resident_pages", json_integer(atomic_load(&pager->resident_pages)));
        json_object_set_new(object, "evicted_pages", json_integer(atomic_load(&pager->evicted_pages)));
        json_object_set_new(object, "counters", counters_to_json(&pager->counters));
        json_object_set_new(object, "store", store_to_json(&guest->store));
        json_object_set_new(object, "leases", leases_to_json(guest->lenders));
        json_object_set_new(object, "service", latencies_to_json(&pager->service));
        json_object_set_new(object, "eviction", latencies_to_json(&pager->eviction));
    }
    return object;
}

static json_t *block_counters_to_json(const struct block_counters *counters)
{
    json_t *object = json_object();
#define X(name) json_object_set_new(object, #name, json_integer((json_int_t)atomic_load(&counters->name)));
    EACH_BLOCK_COUNTER(X)
#undef X
    return object;
}

json_t *block_to_json(const struct block *block)
{
    json_t *object = block_settings_to_json(&block->settings);
    json_object_set_new(object, "state", json_string(block->serves ? "serving" : "failed"));
    json_object_set_new(object, "problem", json_string(block->problem.text));
    if (block->serves) {
        const struct exporter *exporter = &block->exporter;
        json_object_set_new(object, "connected", json_integer(atomic_load(&exporter->connected)));
        json_object_set_new(object, "counters", block_counters_to_json(&exporter->device.counters));
        json_object_set_new(object, "store", store_to_json(&block->store));
        json_object_set_new(object, "leases", leases_to_json(block->lenders));
        json_object_set_new(object, "service", latencies_to_json(&exporter->device.service));
    }
    return object;
}
