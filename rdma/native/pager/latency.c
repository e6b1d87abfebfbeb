#define _GNU_SOURCE
#include "latency.h"

#include <time.h>

enum { STEP_BITS = 3 };

static unsigned bucket_of(uint64_t ns)
{
    if (ns < LATENCY_STEPS) {
        return (unsigned)ns;
    }
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - STEP_BITS;
    unsigned bucket = (shift + 1) * LATENCY_STEPS + ((unsigned)(ns >> shift) & (LATENCY_STEPS - 1));
    return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/* Return the largest value of a bucket. */
static uint64_t upper(unsigned bucket)
{
    if (bucket < LATENCY_STEPS) {
        return bucket;
    }
    unsigned shift = bucket / LATENCY_STEPS - 1, step = bucket % LATENCY_STEPS;
    return ((uint64_t)(LATENCY_STEPS + step + 1) << shift) - 1;
}

void latency_record(struct latencies *latencies, uint64_t ns)
{
    atomic_fetch_add_explicit(&latencies->buckets[bucket_of(ns)], 1, memory_order_relaxed);
    if (ns > atomic_load_explicit(&latencies->worst_ns, memory_order_relaxed)) {
        atomic_store_explicit(&latencies->worst_ns, ns, memory_order_relaxed);
    }
}

uint64_t latency_count(const struct latencies *latencies)
{
    uint64_t total = 0;
    for (unsigned bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        total += atomic_load_explicit(&latencies->buckets[bucket], memory_order_relaxed);
    }
    return total;
}

uint64_t latency_percentile(const struct latencies *latencies, unsigned percent)
{
    uint64_t rank = (latency_count(latencies) * percent + 99) / 100, seen = 0;
    uint64_t worst = atomic_load_explicit(&latencies->worst_ns, memory_order_relaxed);
    for (unsigned bucket = 0; bucket < LATENCY_BUCKETS && rank > 0; bucket++) {
        seen += atomic_load_explicit(&latencies->buckets[bucket], memory_order_relaxed);
        if (seen >= rank) {
            return upper(bucket) < worst ? upper(bucket) : worst;
        }
    }
    return 0;
}

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
