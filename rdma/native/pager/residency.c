#define _GNU_SOURCE
#include "residency.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void residency_add(struct pager *pager, uint32_t page)
{
    pager->flags[page] |= RESIDENT;
    atomic_fetch_add_explicit(&pager->resident_pages, 1, memory_order_relaxed);
    if (store_has(pager->store, page)) {
        atomic_fetch_sub_explicit(&pager->evicted_pages, 1, memory_order_relaxed);
    }
    pager->policy->admit(pager->policy_memory, page);
}

void residency_remove(struct pager *pager, uint32_t page)
{
    pager->flags[page] = 0;
    atomic_fetch_sub_explicit(&pager->resident_pages, 1, memory_order_relaxed);
}

void residency_evicted(struct pager *pager, uint32_t page)
{
    residency_remove(pager, page);
    atomic_fetch_add_explicit(&pager->evicted_pages, 1, memory_order_relaxed);
    pager->evicted_at[page] = pager->evicted++;
    if (pager->evicted == 0) {
        pager->evicted = 1; /* 0 is "never"; after 2^32 evictions some refaults are not known as such */
    }
}

void residency_dropped(struct pager *pager)
{
    atomic_fetch_sub_explicit(&pager->evicted_pages, 1, memory_order_relaxed);
}

bool residency_refault(const struct pager *pager, uint32_t page)
{
    uint32_t at = pager->evicted_at[page];
    return at != 0 && pager->evicted - at <= atomic_load_explicit(&pager->resident_pages, memory_order_relaxed);
}

bool residency_accessed(void *context, uint32_t page)
{
    struct pager *pager = context;
    bool accessed = (pager->flags[page] & ACCESSED) != 0;
    pager->flags[page] &= (uint8_t)~ACCESSED;
    return accessed;
}

static int find_resident(struct pager *pager, struct problem *problem)
{
    off_t begin = (off_t)pager->memory.offset, end = begin + (off_t)pager->memory.bytes;
    for (off_t at = begin; at < end;) {
        off_t data = lseek(pager->memory.fd, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) {
            return 0; /* nothing but a hole is left */
        }
        off_t hole = data < 0 ? -1 : lseek(pager->memory.fd, data, SEEK_HOLE);
        if (hole < 0) {
            return problem_set(problem, "the guest's memory cannot be searched for holes: %s", strerror(errno));
        }
        for (at = data; at < hole && at < end; at += PAGE_BYTES) {
            residency_add(pager, (uint32_t)((at - begin) / PAGE_BYTES));
        }
    }
    return 0;
}

int residency_scan(struct pager *pager, struct problem *problem)
{
    uint32_t evicted = 0;
    if (find_resident(pager, problem) != 0) {
        return -1;
    }
    for (uint32_t page = 0; page < pager->pages; page++) {
        evicted += !is_resident(pager, page) && store_has(pager->store, page);
    }
    atomic_store(&pager->evicted_pages, evicted);
    return 0;
}
