/* A guest that this process serves, and all that belongs to it, from mirror to thread. For the control thread only. */
#ifndef PONDSTACK_CONTROL_GUEST_H
#define PONDSTACK_CONTROL_GUEST_H

#include "../handover/incoming.h"
#include "../handover/outgoing.h"
#include "../pager/pager.h"
#include "../store/file_tier.h"
#include "keeper.h"
#include "lender.h"

#include <pthread.h>

enum { NAME_BYTES = 128, MIRROR_BYTES = 512, PAGES_PER_MIB = 256, MOST_LIMIT_MIB = 1 << 23 };

/* Of a hand-over; of a request only. */
struct session_key {
    uint8_t bytes[KEY_BYTES];
    bool known;
};

/* What a guest is to have: what its record says, and a request to attach. */
struct guest_settings {
    char guest[UUID_BYTES];
    int pid;
    uint64_t started; /* 0 in a request: the process that has the number now */
    char memory[NAME_BYTES];
    char mirror[MIRROR_BYTES];
    char policy[NAME_BYTES];
    uint32_t parameter;
    uint32_t limit_mib;
    uint32_t read_ahead_pages;
    uint32_t chunk_pages;
    bool sealed;
    bool detaching;
    bool incoming; /* it comes from another data plane, the source */
    bool offered;  /* it is offered to another data plane, at `source`; a keeper has its pages */
    bool switched; /* the same, and it is that data plane's */
    struct origin_address source;
    struct keeper keeper;
    struct session_key key; /* in no record */
};

struct guest {
    struct guest_settings settings;
    struct shared_state state;
    struct file_tier mirror;
    struct page_store store;
    struct pager pager;
    struct incoming incoming;
    struct outgoing outgoing;
    struct lender *lenders;
    pthread_t thread;
    bool serves; /* all above is there, and the thread runs or is to be joined */
    bool key_lost; /* it was to come from another data plane, and the session key ended with a former process */
    struct problem problem;
    struct problem told; /* what the log has of it already */
};

/* Begin to serve a guest, or go on where a former process was killed. On failure nothing is held, and its problem says
 * why; the memory of a guest that was attached before stays registered, so that it waits and reads nothing wrong. */
int guest_attach(struct guest *guest);

/* Change its limit at once. */
void guest_set_limit(struct guest *guest, uint32_t limit_mib);

/* Use keys of a lender for its pages; those that are in use already are no error. */
int guest_lease(struct guest *guest, const struct lease_request *request, struct problem *problem);

/* Stop using the key with a number, in the background: `guest_tidy` lets go of it. False: it is not in use. */
bool guest_leave(struct guest *guest, const char *lender, uint64_t number);

/* Have no page wait for a lender whose link is lost; let go of keys that its pager does not use any more, and of lenders
 * without keys. */
void guest_tidy(struct guest *guest);

/* Bring its pages home, in the background. */
void guest_detach(struct guest *guest);

/* Join a thread that has ended, and release all; STILL_RUNS where it has not. */
enum pager_end guest_settle(struct guest *guest);

/* Remove the mirror of a guest that is detached, or has ended. */
void guest_remove_files(const struct guest *guest);

/* What a pager's thread does. */
void *guest_serve(void *pager);

/* Stop serving; the guest waits at its next fault, until a next process attaches. */
void guest_stop(struct guest *guest);

#endif
