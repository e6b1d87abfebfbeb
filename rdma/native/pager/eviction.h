/* Pages leave local memory. For the pager's thread only. */
#ifndef PONDSTACK_PAGER_EVICTION_H
#define PONDSTACK_PAGER_EVICTION_H

#include "pager.h"

/* Evict up to `wanted` pages, at most BATCH_PAGES; how many have left. */
uint32_t evict(struct pager *pager, uint32_t wanted);

/* Copy adjacent resident pages. False: they cannot be read. */
bool copy_pages(const struct pager *pager, uint32_t first, uint32_t count, uint8_t *into);

/* How many pages should leave while there is nothing to serve, so that the next faults find room. */
uint32_t eviction_due(const struct pager *pager);

#endif
