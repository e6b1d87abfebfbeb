/* A lender of one guest: a link to it, and a window for each key. For the control thread only. */
#ifndef PONDSTACK_CONTROL_LENDER_H
#define PONDSTACK_CONTROL_LENDER_H

#include "../links/link.h"
#include "../store/leases.h"

/* One key of a lender, in use. */
struct window {
    struct window *next;
    uint64_t number; /* the key's */
    struct tier *tier;
    struct lease *lease;
};

struct lender {
    struct lender *next;
    struct link *link;
    struct window *windows;
};

/* Show a ticket; NULL and a problem when the lender refuses it, or does not answer by the deadline. */
struct lender *lender_connect(const char *name, json_t *ticket, uint32_t deadline_ms, struct problem *problem);

/* Show a key, and use its region for a guest's pages. */
int lender_lease(struct lender *lender, json_t *key, struct leases *leases, struct problem *problem);

/* Have the lease with a key's number be left. False: there is none. */
bool lender_leave(struct lender *lender, uint64_t number);

/* Release what is left by now; when `all`, everything: only while no pager runs. */
void lender_release(struct lender *lender, struct leases *leases, bool all);

/* Hang up, with no window left, and free it. */
void lender_end(struct lender *lender);

#endif
