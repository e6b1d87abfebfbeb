/* A tier in a lender's memory over TCP: the lender's process carries out every access, so that a frozen one serves
 * nothing. For debugging, as pondstack_rdma/tcp is.
 *
 * A batch is one message and one answer. An access that has no answer by the deadline ends all tiers of its connection.
 */
#ifndef PONDSTACK_LINKS_TCP_TIER_H
#define PONDSTACK_LINKS_TCP_TIER_H

#include "../store/tier.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TCP_KEY_BYTES = 512, TCP_HEADER_BYTES = TIER_MOST_SLOTS * (TCP_KEY_BYTES + 128) };

/* One connection, of which one access at a time has all to itself. */
struct tcp_mover {
    int fd;
    uint32_t deadline_ms;
    pthread_mutex_t turn; /* held for an access */
    atomic_bool ended;
    char header[TCP_HEADER_BYTES];
};

struct tcp_tier {
    struct tier tier;
    struct tcp_mover *mover; /* the link's */
    uint64_t slots;
    char key[TCP_KEY_BYTES]; /* as JSON */
};

/* Make a tier of a key, whose JSON fits. */
void tcp_tier_begin(struct tcp_tier *made, struct tcp_mover *mover, uint64_t slots, const char *key);

#endif
