/* A lender on this machine, as pondstack_rdma/shm lends, and a window for each key. For the control thread only. */
#ifndef PONDSTACK_CONTROL_LENDER_H
#define PONDSTACK_CONTROL_LENDER_H

#include "../store/leases.h"
#include "../store/problem.h"
#include "../store/shm_tier.h"

#include <jansson.h>

enum { LENDER_NAME_BYTES = 128 };

/* One key of a lender, in use. */
struct window {
    struct window *next;
    struct shm_tier tier;
    struct lease *lease;
};

struct lender {
    struct lender *next;
    char name[LENDER_NAME_BYTES];
    int socket;
    int asked;   /* the number of the last question */
    void *words; /* one page: which keys live */
    struct window *windows;
};

/* Show a ticket; NULL and a problem when the lender refuses it, or does not answer within a few seconds. */
struct lender *lender_connect(const char *name, json_t *ticket, struct problem *problem);

/* Show a key, map its region, and use it for a guest's pages. */
int lender_lease(struct lender *lender, json_t *key, struct leases *leases, struct problem *problem);

/* Have the lease with a key's number be left. False: there is none. */
bool lender_leave(struct lender *lender, uint64_t number);

/* Release what is left by now; when `all`, everything: only while no pager runs. */
void lender_release(struct lender *lender, struct leases *leases, bool all);

/* Hang up, with no window left, and free it. */
void lender_end(struct lender *lender);

#endif
