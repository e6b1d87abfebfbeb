/* The pages of one guest that are not in local memory: sealed, all of them in the mirror, as many as find room in
 * lenders' memory too. The rows of its shared state say which pages those are. */
#ifndef PONDSTACK_STORE_PAGE_STORE_H
#define PONDSTACK_STORE_PAGE_STORE_H

#include "leases.h"
#include "shared_state.h"
#include "tier.h"

enum { STORE_MOST_PAGES = TIER_MOST_SLOTS }; /* in one call */

/* Where pages come from whose place is AT_SOURCE or another one of those. */
struct page_source {
    int (*fetch)(struct page_source *source, uint64_t first, uint32_t count, uint8_t *into);
    /* Learn where a page is that is AT_SOURCE, and with which lender this one and others near it are that are
     * LENT_AT_SOURCE. An errno. */
    int (*refer)(struct page_source *source, uint64_t page);
};

struct page_store {
    struct shared_state *state;
    struct tier *mirror;
    struct leases leases;
    struct sealer sealer;
    struct page_source *source; /* NULL: no page is there */
    bool sealed;
    uint8_t *staging; /* STORE_MOST_PAGES pages */
    /* Pages: what lenders took and gave, what the mirror gave, what came from a lender changed. */
    _Atomic uint64_t lender_writes, lender_reads, mirror_reads, corrupt;
    /* Pages of a guest that came from another data plane: those that stayed with their lender; those that were copied
     * although the source had them with one; all that were copied, which the source had in local memory or in its store.
     * Of those that stayed, how many the file system copied from mirror to mirror. */
    _Atomic uint64_t handed, handed_copied, copied_resident, copied_stored, mirror_copied;
};

int store_begin(struct page_store *store, struct shared_state *state, struct tier *mirror, struct problem *problem);

/* Idempotent. */
void store_end(struct page_store *store);

/* Whether a page is stored; else a hole reads as zeros. */
static inline bool store_has(const struct page_store *store, uint64_t page)
{
    return atomic_load_explicit(&store->state->rows[page].place, memory_order_acquire) != NOT_STORED;
}

/* Store adjacent pages, which the caller still has. 0: they are found from now on, by this process and by the next one;
 * else an errno, and none of them is stored any more. */
int store_write(struct page_store *store, uint64_t first, uint32_t count, const uint8_t *pages);

/* Whether another data plane has a page. */
static inline bool store_at_source(const struct page_store *store, uint64_t page)
{
    return atomic_load_explicit(&store->state->rows[page].place, memory_order_acquire) >= AT_SOURCE;
}

/* Store adjacent pages that another data plane still has, and this host's memory does not. On failure they are still
 * there. */
int store_take_in(struct page_store *store, uint64_t first, uint32_t count, const uint8_t *pages);

/* Take over where a lender has a page for the source, and what it was sealed as. False: this data plane cannot read it
 * there, so that the source is to give it. */
bool store_refer(struct page_store *store, uint64_t page, const uint8_t buffer[BUFFER_ID_BYTES], uint32_t slot,
                 uint64_t version, const uint8_t tag[TAG_BYTES]);

/* Have the mirror have adjacent pages that lenders have for the source, as they are. `scratch`: of as many pages. Those
 * that no lender gives are the source's to give. 0, or an errno of the mirror. */
int store_mirror_lent(struct page_store *store, uint64_t first, uint32_t count, uint8_t *scratch);

/* Have adjacent lent pages of the source's be known, so many of them from the first on; 0: the first one is not lent any
 * more, or the source says nothing. */
uint32_t store_know_lent(struct page_store *store, uint64_t first, uint32_t count);

/* Have the mirror have adjacent pages that lenders have for the source, copied by the file system out of the source's mirror: no lender is asked. All have to be known
 * (store_know_lent). The first one is opened, in `scratch`: it is the right file, and has what it is to have. 0, or an errno, and
 * nothing was changed. */
int store_mirror_former(struct page_store *store, struct tier *former, uint64_t first, uint32_t count, uint8_t *scratch);

/* Seal with the key of another data plane from now on, and a tenure of this side's own; once for all processes, before
 * anything is sealed. False: libcrypto failed. */
bool store_adopt(struct page_store *store, const uint8_t key[KEY_BYTES], uint64_t tenure);

/* Fetch adjacent pages, all of them stored. EBADMSG: one is not what was stored last. */
int store_read(struct page_store *store, uint64_t first, uint32_t count, uint8_t *into);

/* A page is in local memory: the slot that a lender had for it is free. Its row stays as it is, but
 * that another data plane does not have it any more. */
void store_came_home(struct page_store *store, uint64_t page);

/* Forget a page: its hole reads as zeros. */
void store_drop(struct page_store *store, uint64_t page);

#endif
