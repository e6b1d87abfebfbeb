/* The source's side of a hand-over: answers the destination's requests, on the pager's thread.
 *
 *     NONE -> OFFERED -> FROZEN -> SWITCHING -> SWITCHED -> DELIVERED
 *                 \         \ ^-------'
 *                  `---------`-> WITHDRAWN -> BACK -> NONE
 *
 * OFFERED: the guest runs. FROZEN: the destination said that it has stopped, and nobody can write to its memory.
 * WITHDRAWN: by an order, or since the destination was silent for the deadline; it gets nothing any more before anybody
 * here can write. BACK: who waited to write goes on. SWITCHED: the guest is the destination's, whatever
 * happens; DELIVERED: it has all. From OFFERED on the pager outlives the guest's process: where that ends before the
 * switch, the guest can go on at the destination only, and is switched.
 *
 * The control thread begins, orders the switch, and withdraws; the pager's thread does all else. Each change of the
 * state is one compare-and-swap, so that a switch and a withdrawal exclude each other.
 */
#ifndef PONDSTACK_HANDOVER_OUTGOING_H
#define PONDSTACK_HANDOVER_OUTGOING_H

#include "door.h"

#include "../pager/pager.h"

enum outgoing_state {
    OUT_NONE,
    OUT_OFFERED,
    OUT_FROZEN,
    OUT_SWITCHING,
    OUT_SWITCHED,
    OUT_WITHDRAWN,
    OUT_BACK,
    OUT_DELIVERED
};

struct outgoing {
    struct chore chore; /* the first member */
    struct door door;
    struct peer *peer; /* NULL: nobody is connected */
    struct pager *pager;
    bool protects; /* the pager's thread: nobody can write */
    bool tells;    /* the pager's thread: who is connected can read what lenders have */
    uint64_t session;
    char host[HOST_TEXT_BYTES];
    uint32_t deadline_ms;
    uint64_t heard_ns; /* of the peer, last */
    _Atomic int state; /* enum outgoing_state */
    _Atomic bool connected;
    /* That were sent; of the stored ones those that a lender has for the guest; those told where they are instead. */
    _Atomic uint64_t resident_pages, stored_pages, lent_pages, told_pages, bytes;
};

/* Have it be the chore of a guest that is not handed over, before its pager runs. */
void outgoing_begin(struct outgoing *outgoing, struct pager *pager);

/* Of the control thread, while nothing is offered: listen for whoever has the key. `session` is a number that no other
 * hand-over has. */
int outgoing_open(struct outgoing *outgoing, const char *host, int port, const uint8_t key[KEY_BYTES],
                  const char *guest, uint64_t session, uint32_t deadline_ms, struct problem *problem);

/* After that: offer the guest; or do so no more, since it cannot be kept for the destination. */
void outgoing_offer(struct outgoing *outgoing);
void outgoing_close(struct outgoing *outgoing);

/* After `outgoing_open`, before its pager runs: go on with one that was FROZEN or SWITCHED when a former process was
 * killed. Nobody writes: that process has protected the memory, or the guest's has ended. */
void outgoing_resume(struct outgoing *outgoing, enum outgoing_state state);

/* Of the control thread: change the state; false: it is another one than `from`. */
bool outgoing_change(struct outgoing *outgoing, enum outgoing_state from, enum outgoing_state to);

/* Of the control thread: where a hand-over was withdrawn, and everybody here may write again, be as before. */
void outgoing_tidy(struct outgoing *outgoing);

/* Once no pager runs; idempotent. */
void outgoing_end(struct outgoing *outgoing);

#endif
