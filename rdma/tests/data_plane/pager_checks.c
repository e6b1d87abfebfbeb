/* Checks of those parts of rdma/native/pager that need no other process: latencies, residency, and eviction's room. */
#define _GNU_SOURCE
#include "../../native/pager/eviction.h"
#include "../../native/pager/residency.h"
#include "checks.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 64 };

static void check_latencies(void)
{
    static struct latencies latencies;
    CHECK(latency_count(&latencies) == 0 && latency_percentile(&latencies, 50) == 0);
    for (uint64_t ns = 1; ns <= 1000; ns++) {
        latency_record(&latencies, ns * 1000);
    }
    latency_record(&latencies, UINT64_MAX);
    CHECK(latency_count(&latencies) == 1001);
    uint64_t p50 = latency_percentile(&latencies, 50), p99 = latency_percentile(&latencies, 99);
    CHECK(p50 >= 501000 && p50 <= 501000 + 501000 / 8);
    CHECK(p99 >= 991000 && p99 <= 991000 + 991000 / 8);
    CHECK(latency_percentile(&latencies, 100) == UINT64_MAX && latencies.worst_ns == UINT64_MAX);
    CHECK(clock_ns() <= clock_ns());
}

/* A store that has no page. */
static struct page_row rows[PAGES];
static struct shared_state state = {.rows = rows};
static struct page_store store = {.state = &state};

static void begin(struct pager *pager, uint8_t *flags, uint32_t *evicted_at)
{
    memset(rows, 0, sizeof rows);
    *pager = (struct pager){
        .store = &store,
        .policy = &fifo_policy,
        .pages = PAGES,
        .flags = flags,
        .evicted_at = evicted_at,
        .evicted = 1,
    };
    pager->policy_memory = calloc(1, fifo_policy.size_bytes(PAGES));
    CHECK(pager->policy_memory != NULL);
    fifo_policy.begin(pager->policy_memory, PAGES, 0);
}

static void check_residency(void)
{
    static struct pager pager;
    static uint8_t flags[PAGES];
    static uint32_t evicted_at[PAGES];
    begin(&pager, flags, evicted_at);
    for (uint32_t page = 0; page < 4; page++) {
        residency_add(&pager, page);
    }
    CHECK(pager.resident_pages == 4 && is_resident(&pager, 3) && !is_resident(&pager, 4));
    CHECK(!residency_refault(&pager, 0));
    uint32_t victim = fifo_policy.victim(pager.policy_memory, residency_accessed, &pager);
    CHECK(victim == 0);
    atomic_store(&rows[victim].place, IN_MIRROR);
    residency_evicted(&pager, victim);
    CHECK(pager.resident_pages == 3 && !is_resident(&pager, 0) && residency_refault(&pager, 0));
    CHECK(pager.evicted_pages == 1);
    pager.evicted += 2; /* three evictions ago, three are resident */
    CHECK(residency_refault(&pager, 0));
    pager.evicted++;
    CHECK(!residency_refault(&pager, 0));
    flags[1] |= ACCESSED;
    CHECK(residency_accessed(&pager, 1) && !residency_accessed(&pager, 1) && is_resident(&pager, 1));
    pager.evicted = UINT32_MAX;
    residency_evicted(&pager, 1);
    CHECK(pager.evicted == 1 && evicted_at[1] == UINT32_MAX);
    free(pager.policy_memory);
}

static void check_scan(void)
{
    static struct pager pager;
    static uint8_t flags[PAGES];
    static uint32_t evicted_at[PAGES];
    struct problem problem;
    char byte = 1;
    begin(&pager, flags, evicted_at);
    pager.memory = (struct memory){.bytes = (uint64_t)PAGES * PAGE_BYTES, .offset = 2 * PAGE_BYTES};
    pager.memory.fd = memfd_create("memory", MFD_CLOEXEC);
    CHECK(ftruncate(pager.memory.fd, (PAGES + 4) * PAGE_BYTES) == 0);
    CHECK(residency_scan(&pager, &problem) == 0 && pager.resident_pages == 0);
    /* Pages of the file: the first two and the last are not of the memory. */
    static const uint32_t data[] = {0, 1, 2, 9, 40, PAGES + 1, PAGES + 2};
    for (size_t at = 0; at < sizeof data / sizeof *data; at++) {
        CHECK(pwrite(pager.memory.fd, &byte, 1, (off_t)data[at] * PAGE_BYTES + 17) == 1);
    }
    CHECK(residency_scan(&pager, &problem) == 0);
    CHECK(pager.resident_pages == 4 && is_resident(&pager, 0) && is_resident(&pager, 7) && is_resident(&pager, 38));
    CHECK(is_resident(&pager, PAGES - 1) && pager.evicted_pages == 0);
    close(pager.memory.fd);
    CHECK(residency_scan(&pager, &problem) != 0 && strstr(problem.text, "holes") != NULL);
    free(pager.policy_memory);
}

static void check_read_ahead(void)
{
    struct read_ahead ahead;
    read_ahead_begin(&ahead, 8);
    uint32_t expected[] = {1, 3, 5, 9, 9}, page = 100, other = 5000;
    for (size_t at = 0; at < sizeof expected / sizeof *expected; at++) { /* two runs at once */
        CHECK(read_ahead_wanted(&ahead, page) == expected[at]);
        read_ahead_came(&ahead, page, expected[at]);
        page += expected[at];
        CHECK(read_ahead_wanted(&ahead, other) == expected[at]);
        read_ahead_came(&ahead, other, 1); /* less came than was wanted */
        other += 1;
    }
    CHECK(read_ahead_wanted(&ahead, page + 1) == 1); /* not the next one */
    read_ahead_came(&ahead, page + 1, 0);            /* and it did not come: it is asked for again */
    for (uint32_t at = 0; at < RUNS; at++) {
        CHECK(read_ahead_wanted(&ahead, 10000 * (at + 1)) == 1);
        read_ahead_came(&ahead, 10000 * (at + 1), 1);
    }
    CHECK(read_ahead_wanted(&ahead, page) == 1); /* forgotten */
    CHECK(read_ahead_wanted(&ahead, 10000 * RUNS + 1) == 3);
    read_ahead_begin(&ahead, 0);
    for (uint32_t at = 1; at < 10; at++) {
        CHECK(read_ahead_wanted(&ahead, at) == 1);
        read_ahead_came(&ahead, at, 1);
    }
    read_ahead_begin(&ahead, 1000);
    CHECK(ahead.most == MOST_READ_AHEAD);
}

static void check_room(void)
{
    static struct pager pager;
    pager.pages = 1601;
    pager.limit_pages = 1600;
    pager.resident_pages = 1000;
    CHECK(eviction_due(&pager) == 0);
    pager.resident_pages = 1600 - 4 * BATCH_PAGES + 5;
    CHECK(eviction_due(&pager) == 5);
    pager.pages = 1600;
    CHECK(eviction_due(&pager) == 0);
    pager.limit_pages = 16;
    CHECK(eviction_due(&pager) == pager.resident_pages + 1 - 16);
}

int main(void)
{
    check_latencies();
    check_residency();
    check_scan();
    check_read_ahead();
    check_room();
    puts("the pager's parts hold");
    return 0;
}
