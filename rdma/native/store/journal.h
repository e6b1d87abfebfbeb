/* How pages are overwritten of which nobody has another copy: those of a block device.
 *
 * A run of pages is sealed into the journal, in the memory that outlives this process; then it is written where it
 * belongs, and then the journal is emptied. Whoever goes on after a death replays a journal that is not empty. So a
 * page is what it was or what it is to be, as a whole.
 */
#ifndef PONDSTACK_STORE_JOURNAL_H
#define PONDSTACK_STORE_JOURNAL_H

#include "page_store.h"

struct journal {
    _Atomic uint32_t count; /* pages; 0: it is empty */
    uint64_t first;
    uint64_t versions[STORE_MOST_PAGES];
    uint8_t tags[STORE_MOST_PAGES][TAG_BYTES];
    _Alignas(PAGE_BYTES) uint8_t content[STORE_MOST_PAGES * PAGE_BYTES];
};

/* It lies behind the rows of a shared state that was begun with `sizeof(struct journal)` spare bytes. */
static inline struct journal *journal_of(const struct page_store *store)
{
    return store->state->spare;
}

/* Overwrite adjacent pages. An errno: pages that were not stored before still are not; of others, what they were is
 * found, or nothing (EBADMSG). */
int journal_write(struct page_store *store, uint64_t first, uint32_t count, const uint8_t *pages);

/* Before anything else of a store that a killed process had: end what it began. An errno: not yet. */
int journal_replay(struct page_store *store);

#endif
