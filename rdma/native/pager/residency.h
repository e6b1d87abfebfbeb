/* Which pages are in local memory, and what the pager knows of accesses to them. For the pager's thread only. */
#ifndef PONDSTACK_PAGER_RESIDENCY_H
#define PONDSTACK_PAGER_RESIDENCY_H

#include "pager.h"

enum { RESIDENT = 1, ACCESSED = 2 };

static inline bool is_resident(const struct pager *pager, uint32_t page)
{
    return (pager->flags[page] & RESIDENT) != 0;
}

/* A page has become resident. */
void residency_add(struct pager *pager, uint32_t page);

/* A page is not resident any more, and its policy knows. */
void residency_remove(struct pager *pager, uint32_t page);

/* A victim has gone to the store: remember when, so that a fault soon after is known as one. */
void residency_evicted(struct pager *pager, uint32_t page);

/* Whether a page was evicted so recently that a policy should have kept it: fewer evictions ago than pages are resident
 * (the refault distance of Linux's mm/workingset.c). */
bool residency_refault(const struct pager *pager, uint32_t page);

/* An accessed_function. Nobody tells user space of accesses to resident pages: the bit is set by what the pager sees, a
 * fault soon after the page's eviction, and a write to it while it is on its way out. */
bool residency_accessed(void *pager, uint32_t page);

/* A page of the store that is not resident is given up there. */
void residency_dropped(struct pager *pager);

/* Find all resident pages, and count those that are in the store only: data in the guest's file is the truth, whatever
 * any table says. */
int residency_scan(struct pager *pager, struct problem *problem);

#endif
