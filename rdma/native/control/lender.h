/* A lender of one guest: a link to it, its own or the process's, and a window for each key. For the control thread only.
 */
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

/* What is to be leased of a lender. `kept`: the process's link to it, which keys that say where their region is go over;
 * NULL: there is none. `ticket`: for a link of the guest's own, over which all other keys are shown; NULL: there is to be
 * none. The deadline is of accesses over that one. */
struct lease_request {
    const char *lender;
    struct link *kept;
    json_t *ticket, *keys;
    uint32_t deadline_ms;
    bool hands; /* keys that say so are of memory that another data plane has its pages in, which hands a guest over */
};

/* Whether a key says where its region is. */
bool key_is_located(const json_t *key);

/* Take a link, NULL: there is no memory; the link is let go of then. */
struct lender *lender_make(struct link *link, struct problem *problem);

/* The window of a key; NULL: there is none. */
struct window *lender_window(const struct lender *lender, uint64_t number);

/* Show a key, and use its region for a guest's pages; one that is used already is no error. */
int lender_lease(struct lender *lender, json_t *key, bool hands, struct leases *leases, struct problem *problem);

/* Have the lease with a key's number be left. False: there is none. */
bool lender_leave(struct lender *lender, uint64_t number);

/* Have no lease wait for a link that is lost. */
void lender_look(struct lender *lender);

/* Release what is left by now; when `all`, everything: only while no pager runs. */
void lender_release(struct lender *lender, struct leases *leases, bool all);

/* Let go of the link, with no window left, and free it. */
void lender_end(struct lender *lender);

#endif
