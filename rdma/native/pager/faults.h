/* Pages come into local memory. For the pager's thread only. */
#ifndef PONDSTACK_PAGER_FAULTS_H
#define PONDSTACK_PAGER_FAULTS_H

#include "pager.h"

/* Read what the userfaultfd has, and serve it. Returns how many events there were; -1: it cannot be read. */
int serve_events(struct pager *pager);

/* Bring adjacent stored pages home, whose holes are there; how many came. At most STORE_MOST_PAGES. */
uint32_t take_home(struct pager *pager, uint32_t first, uint32_t count);

/* Bring stored pages home, some at a time, whatever the limit; false when all are there. */
bool bring_home(struct pager *pager, uint32_t *cursor);

#endif
