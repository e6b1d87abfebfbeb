/* The lenders of one consumer, a list. For the control thread only. */
#ifndef PONDSTACK_CONTROL_LENDERS_H
#define PONDSTACK_CONTROL_LENDERS_H

#include "lender.h"

/* Use keys of a lender for a consumer's pages; those that are in use already are no error. It stops at the first one that
 * cannot be used. */
int lenders_lease(struct lender **list, struct leases *leases, const struct lease_request *request,
                  struct problem *problem);

/* Have the lease with a key's number be left. False: there is none. */
bool lenders_leave(struct lender *list, const char *name, uint64_t number);

/* Have all leases that are still HANDED be left. */
void lenders_leave_handed(struct lender *list);

/* Have no lease wait for a link that is lost. */
void lenders_look(struct lender *list);

/* Let go of what is left by now, and of lenders without a window; when `all`, of everything: only while nobody uses the
 * leases. */
void lenders_release(struct lender **list, struct leases *leases, bool all);

#endif
