/* The leases of one guest: slots in lenders' memory, and which page is in which. Copies only: the mirror has every
 * page.
 *
 * A page gets a slot when it is evicted, of the lease with most free ones, and gives it back when it is fetched. Where no
 * slot is free, the page that a policy of rdma/native/replacement chooses sinks: it is in the mirror alone then, and rises
 * when it is evicted the next time. What a lender does not give, or gives damaged, the mirror gives. Nothing here outlives
 * the process, as links to lenders do not.
 *
 * The pager's thread uses them; the control thread adds leases, and asks for one to be left.
 */
#ifndef PONDSTACK_STORE_LEASES_H
#define PONDSTACK_STORE_LEASES_H

#include "../replacement/policy.h"
#include "tier.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { MOST_LEASES = 255, MOST_LEASE_SLOTS = 1 << 24 };
/* HANDED: another data plane has its pages there, which are read; nothing is written before the guest is this one's. */
enum lease_state { LEASE_ACTIVE, LEASE_LEAVING, LEASE_LOST, LEASE_LEFT, LEASE_HANDED };
enum { BUFFER_ID_BYTES = 16 };

struct lease {
    struct tier *tier;
    uint32_t slots;
    _Atomic uint32_t free_count;
    _Atomic int state; /* enum lease_state */
    uint8_t buffer[BUFFER_ID_BYTES]; /* the same on each host that has a key of that memory; zeros: not known */
    uint8_t *taken;                  /* of a lease that was HANDED, a bit for each slot that has a page; else NULL */
    uint32_t free[];
};

struct leases {
    struct lease *_Atomic list[MOST_LEASES];
    _Atomic uint32_t used; /* entries of the list that are in use, or were */
    uint32_t *where;       /* by page: 0, or its lease and slot */
    uint64_t pages;
    const struct policy_type *policy; /* of the pages that have a slot, which page sinks next */
    void *policy_memory;
    _Atomic uint64_t sunk; /* pages */
};

/* False: there is no memory, or there are too many pages. */
bool leases_begin(struct leases *leases, uint64_t pages, const struct policy_type *policy);

/* Idempotent. The tiers stay the caller's. */
void leases_end(struct leases *leases);

/* Of the control thread: make a lease of a tier (NULL: no memory), and add it (false: there are too many). */
struct lease *lease_make(struct tier *tier, uint32_t slots);
/* Before it is added: begin as HANDED. False: there is no memory. */
bool lease_hand(struct lease *lease);
void lease_free(struct lease *lease);
bool leases_add(struct leases *leases, struct lease *lease);

/* Ask the lender of an active lease for nothing any more: the mirror has its pages. Of any thread. */
void lease_lose(struct lease *lease);

/* Of the control thread: free a lease, once its state is LEASE_LEFT (the pager's thread has taken it out of the list
 * and does not look at it any more), or when no pager runs. */
void leases_remove(struct leases *leases, struct lease *lease);

/* Where a page lies, for another data plane: the lease and its slot; NULL: no lender has it for sure. */
const struct lease *leases_where(const struct leases *leases, uint64_t page, uint32_t *slot);

/* Take a slot over of the HANDED lease of a buffer. False: there is no such lease, or another page has the slot. */
bool leases_refer(struct leases *leases, uint64_t page, const uint8_t buffer[BUFFER_ID_BYTES], uint32_t slot);

/* Use HANDED leases as all others from now on: the guest is this data plane's. */
void leases_take_over(struct leases *leases);

/* Write adjacent pages to leases; others sink, as far as there is no room. Returns how many of them, from the first on,
 * are with lenders now. A lender that fails ends it, so that nobody waits for two of them. */
uint32_t leases_write(struct leases *leases, uint64_t first, uint32_t count, const void *from);

/* Read adjacent pages, as far as one lease has them; returns how many. 0: no lender gives the first one. */
uint32_t leases_read(struct leases *leases, uint64_t first, uint32_t count, void *into);

/* Give the slot of a page back. */
void leases_drop(struct leases *leases, uint64_t page);

/* Stop using the leases that are to be left: the mirror has their pages. */
void leases_sweep(struct leases *leases);

#endif
