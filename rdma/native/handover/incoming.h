/* The destination's side of a hand-over: where its pager gets pages from, and what takes them in behind the guest.
 *
 *     WAITING -> TAKING -> COMPLETE -> OVER
 *
 * WAITING: the memory is empty, and a fault waits. The first one, or an order, says that the source's guest has
 * stopped: the source is asked to let nobody write any more, and for its map. TAKING: pages come as faults ask for
 * them, and one run after the other meanwhile, those that were resident there first. COMPLETE: all are on this host,
 * and the source is told until it has been told of the switch. OVER: nothing of it is needed any more.
 *
 * Pages that the source has with a lender stay there (`references`): this side reads them with keys of its own to the
 * same memory, and writes nothing there before it is told of the switch. The mirror is filled from the lenders, one run
 * in FILL_MS, or out of the source's one where this host has that file, too (former_mirror.c); until it has a page, the
 * source has it, too.
 *
 * All of it is done by the pager's thread, which waits for the source up to the deadline. What it has so far is in the
 * rows of the shared state, so that the next process goes on after a death.
 */
#ifndef PONDSTACK_HANDOVER_INCOMING_H
#define PONDSTACK_HANDOVER_INCOMING_H

#include "door.h"

#include "../pager/pager.h"
#include "../store/file_tier.h"

enum incoming_state { IN_NONE, IN_WAITING, IN_TAKING, IN_COMPLETE, IN_OVER };

enum { MOST_PATH_BYTES = 512 };

struct origin_address {
    char host[HOST_TEXT_BYTES];
    int port;
    uint32_t deadline_ms; /* of a request to the source */
    bool references;      /* the source can tell with which lenders pages are */
    char mirror[MOST_PATH_BYTES]; /* the source's one, on a file system that both hosts have; "": there is none */
};

/* The orders in which pages are looked for: resident, stored, lent. */
enum { TAKEN_KINDS = 3 };

struct incoming {
    struct chore chore; /* the first member */
    struct page_source source;
    struct pager *pager;
    struct shared_state *state;
    struct origin_address from;
    struct peer peer;
    bool mapped;           /* no row is AT_SOURCE only */
    bool refers;           /* the key is the source's, and lenders are read */
    uint32_t cursors[TAKEN_KINDS]; /* of looks for pages that are to be fetched */
    struct peer_row rows[MOST_ROWS];
    struct file_tier former; /* the source's mirror, once it is needed */
    bool apart;              /* that is of no use here */
    uint64_t next_ns;      /* not before is connected again */
    uint64_t heard_ns;     /* of the source, last */
    _Atomic bool wanted;   /* the source's guest has stopped */
    _Atomic int phase;     /* enum incoming_state */
    _Atomic int error;     /* of the last request, an errno; 0 */
    _Atomic bool connected;
    _Atomic uint64_t pages, bytes; /* that came */
};

/* Have it be the chore of a pager, and a source of its store, before that runs. A phase of the shared state says how
 * far a former process came. */
void incoming_begin(struct incoming *incoming, struct pager *pager, struct shared_state *state,
                    const struct origin_address *from);

/* Of the pager's thread: ask the source; an errno, EAGAIN where it says "not yet", ECANCELED where it has the guest back
 * or does not do that. */
int incoming_ask(struct incoming *incoming, struct peer_request request, struct peer_answer *answer, void *payload);

/* Have the rows say that the source has all pages. */
void incoming_clear(struct shared_state *state);

/* Of the control thread: the source's guest has stopped. */
void incoming_take(struct incoming *incoming);

/* Once no pager runs, or it is OVER and the pager has another chore; idempotent. */
void incoming_end(struct incoming *incoming);

#endif
