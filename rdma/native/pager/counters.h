/* What a pager counts. Its thread adds; any thread reads. The list is the one place where a counter is named. */
#ifndef PONDSTACK_PAGER_COUNTERS_H
#define PONDSTACK_PAGER_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* faults: missing pages that were asked for; loads: pages that came from the store, with those that were read ahead;
 * zero_fills: pages that were never stored; refaults: faults soon after the page's eviction; already: faults of pages
 * that were there by then; write_races: writes to a page on its way out, which is not evicted then or is fetched again;
 * evictions: pages; eviction_failures: pages that could not leave, since the store did not take them or the guest's
 * mapping was changing; over_limit: pages that were let in although the limit was reached, since nothing could leave;
 * read_failures: faults whose page the store did not give, and that wait; discards: pages that the guest gave up. */
#define EACH_COUNTER(X)                                                                                                \
    X(faults)                                                                                                          \
    X(loads)                                                                                                           \
    X(zero_fills)                                                                                                      \
    X(read_ahead)                                                                                                      \
    X(refaults)                                                                                                        \
    X(already)                                                                                                         \
    X(write_races)                                                                                                     \
    X(evictions)                                                                                                       \
    X(eviction_failures)                                                                                               \
    X(over_limit)                                                                                                      \
    X(read_failures)                                                                                                   \
    X(discards)

struct counters {
#define X(name) _Atomic uint64_t name;
    EACH_COUNTER(X)
#undef X
};

#define COUNT(counters, name, pages) atomic_fetch_add_explicit(&(counters).name, (pages), memory_order_relaxed)

#endif
