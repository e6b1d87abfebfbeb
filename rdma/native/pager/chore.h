/* What else a pager's thread does beside faults: one end of a hand-over (handover/). One for each guest, or none. */
#ifndef PONDSTACK_PAGER_CHORE_H
#define PONDSTACK_PAGER_CHORE_H

#include <stdatomic.h>
#include <stdbool.h>

struct pager;

struct chore {
    /* A part of it, while no fault waits. Milliseconds until the next one; -1: when `fd` is readable, or it is told. */
    int (*turn)(struct chore *chore, struct pager *pager);
    int fd;                /* -1: none. The pager's thread changes it */
    _Atomic bool outlives; /* goes on after the guest's process */
};

enum { CHORE_EVENTS = 8 }; /* a turn comes after so many reads of events at the latest */

#endif
