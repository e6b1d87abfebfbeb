/* One guest's memory, partly in the store: serves its page faults, and keeps a limit of pages resident.
 *
 * One thread does all of it (`pager_run`): it reads events of the guest's userfaultfd, fills holes, and evicts when
 * there is nothing to serve, or no room. So no lock is taken on the path of a fault, and nothing is allocated on it.
 * What other threads may do: set the limit, ask for the end, read counters.
 */
#ifndef PONDSTACK_PAGER_PAGER_H
#define PONDSTACK_PAGER_PAGER_H

#include "chore.h"
#include "counters.h"
#include "latency.h"
#include "read_ahead.h"
#include "target.h"

#include "../replacement/policy.h"
#include "../store/page_store.h"

enum { BATCH_PAGES = 16 };

/* What a pager is to do (HOLD: serve, and have no page leave yet), and how it ended. */
enum pager_order { ORDER_SERVE, ORDER_HOLD, ORDER_DETACH, ORDER_STOP };
enum pager_end { STILL_RUNS, ENDED_STOPPED, ENDED_DETACHED, ENDED_GUEST_GONE, ENDED_HANDED_OVER, ENDED_FAILED };

struct pager {
    struct target target;
    struct memory memory;
    struct page_store *store;
    const struct policy_type *policy;
    void *policy_memory;
    uint32_t pages;
    uint8_t *flags;       /* by page: RESIDENT, ACCESSED */
    uint32_t *evicted_at; /* by page: the number of its last eviction, 0 for none */
    uint32_t evicted;     /* the number of the next one, from 1 on */
    uint8_t *buffer;      /* STORE_MOST_PAGES pages */
    int userfault_fd;
    int wake_fd; /* an eventfd: there is a new limit or order */
    struct read_ahead read_ahead;
    uint32_t chunk; /* so many adjacent pages come and leave together, where they can */
    bool retry;  /* a fault waits whose page the store did not give */
    bool frozen; /* nobody may write: pages come in protected, none leaves, and who writes waits */
    struct chore *_Atomic chore;
    struct problem problem;
    _Atomic uint32_t limit_pages;
    _Atomic uint32_t resident_pages;
    _Atomic uint32_t evicted_pages; /* in the store, and not in local memory */
    _Atomic int order;  /* enum pager_order */
    _Atomic int end;    /* enum pager_end */
    enum pager_end chore_end; /* of the pager's thread: what its chore ended it with, else STILL_RUNS */
    _Atomic bool sweep; /* leases are to be left */
    struct counters counters;
    struct latencies service, eviction;
};

struct pager_settings {
    const struct policy_type *policy;
    uint32_t parameter; /* of the policy */
    uint32_t limit_pages;
    uint32_t read_ahead; /* pages, at most MOST_READ_AHEAD; 0: never */
    uint32_t chunk;      /* pages, a divisor of BATCH_PAGES; 1: each page by itself */
};

/* Prepare a pager. It takes over target, memory and userfault_fd when this returns 0. */
int pager_begin(struct pager *pager, const struct target *target, const struct memory *memory, int userfault_fd,
                struct page_store *store, const struct pager_settings *settings, struct problem *problem);

/* Once the memory is registered, and before `pager_run`: find out what is resident, and have all of the guest's threads
 * that wait try again. */
int pager_take_over(struct pager *pager, struct problem *problem);

/* Serve until the order says otherwise, or the guest's process has ended. */
void pager_run(struct pager *pager);

/* Tell it; from any thread. */
void pager_set_limit(struct pager *pager, uint32_t pages);
void pager_set_order(struct pager *pager, enum pager_order order);
void pager_sweep(struct pager *pager);
void pager_set_chore(struct pager *pager, struct chore *chore);

/* Have it look up from waiting. */
void pager_tell(struct pager *pager);

/* Of its own thread: forbid writes to all of the memory, or allow them again. False: the guest's mapping is changing,
 * serve its events first. */
bool pager_freeze(struct pager *pager, bool frozen);

/* Release all; idempotent, after `pager_run` has returned. */
void pager_end(struct pager *pager);

#endif
