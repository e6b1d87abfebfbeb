/* Durations in bounded memory: a histogram with buckets that are an eighth of their value wide, as store/latency.py. */
#ifndef PONDSTACK_PAGER_LATENCY_H
#define PONDSTACK_PAGER_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

enum { LATENCY_STEPS = 8, LATENCY_BUCKETS = 64 * LATENCY_STEPS };

/* One thread records, any thread reads. */
struct latencies {
    _Atomic uint64_t buckets[LATENCY_BUCKETS];
    _Atomic uint64_t worst_ns;
};

void latency_record(struct latencies *latencies, uint64_t ns);

/* Return how many durations were recorded. */
uint64_t latency_count(const struct latencies *latencies);

/* Return a percentile in nanoseconds, at most an eighth above what was measured; 0 when nothing was. */
uint64_t latency_percentile(const struct latencies *latencies, unsigned percent);

/* Return the monotonic time in nanoseconds. */
uint64_t clock_ns(void);

#endif
