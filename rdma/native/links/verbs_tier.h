/* A tier in a lender's memory over RDMA: its device serves every access, and no process of it, so that a frozen lender
 * serves, and one without CPUs.
 *
 * A batch is one chain of work requests, whose last one is signalled. A reliable connection is ordered: its completion
 * says that the lender's device has acknowledged all writes of the chain, and a later read on the same connection finds
 * them. An access that fails ends all tiers of its connection, since the device ends the queue pair.
 */
#ifndef PONDSTACK_LINKS_VERBS_TIER_H
#define PONDSTACK_LINKS_VERBS_TIER_H

#include "../store/tier.h"
#include "rc_conn.h"

#include <pthread.h>
#include <stdatomic.h>

/* One connection, of which one access at a time has all to itself. */
struct verbs_mover {
    RcConn conn;
    Transfer transfers[TIER_MOST_SLOTS];
    uint32_t deadline_ms;
    pthread_mutex_t turn; /* held for an access */
    atomic_bool ended;
};

struct verbs_tier {
    struct tier tier;
    struct verbs_mover *mover; /* the link's */
    uint64_t slots, address;
    uint32_t rkey;
};

/* Make a tier of a region, by what the lender's device knows it by. */
void verbs_tier_begin(struct verbs_tier *made, struct verbs_mover *mover, uint64_t slots, uint64_t address,
                      uint32_t rkey);

#endif
