#include "journal.h"

#include "../pager/crash_point.h"

#include <errno.h>
#include <string.h>

/* Seal pages into the journal. */
static bool fill(struct page_store *store, struct journal *journal, uint64_t first, uint32_t count,
                 const uint8_t *pages)
{
    _Atomic uint64_t *last = &store->state->header->last_version;
    journal->first = first;
    for (uint32_t at = 0; at < count; at++) {
        size_t offset = (size_t)at * PAGE_BYTES;
        /* Not the row's version plus one: a page whose write failed has its former row, and no nonce comes twice. */
        journal->versions[at] = atomic_fetch_add(last, 1) + 1;
        if (!store->sealed) {
            memcpy(journal->content + offset, pages + offset, PAGE_BYTES);
        } else if (!sealer_seal(&store->sealer, first + at, journal->versions[at], pages + offset,
                                journal->content + offset, journal->tags[at])) {
            return false;
        }
    }
    return true;
}

/* The mirror took them, or a part of them: it is not known what it has. A seal shows whether a page still is what it
 * was; where there is none, nobody may find it. */
static void give_up(struct page_store *store, const struct journal *journal, uint32_t count)
{
    for (uint32_t at = 0; at < count; at++) {
        uint64_t page = journal->first + at;
        if (!store_has(store, page)) {
            (void)store->mirror->type->discard(store->mirror, page, 1);
        } else if (!store->sealed) {
            leases_drop(&store->leases, page);
            atomic_store(&store->state->rows[page].place, LOST);
        }
    }
}

/* Write what is in the journal where it belongs; may be done again. */
static int carry_out(struct page_store *store, const struct journal *journal, uint32_t count)
{
    int error = store->mirror->type->write(store->mirror, journal->first, count, journal->content);
    CRASH_POINT("mirrored");
    for (uint32_t at = 0; at < count && error == 0; at++) {
        struct page_row *row = &store->state->rows[journal->first + at];
        row->version = journal->versions[at];
        memcpy(row->tag, journal->tags[at], TAG_BYTES);
        atomic_store_explicit(&row->place, IN_MIRROR, memory_order_release);
        CRASH_POINT("row");
    }
    return error;
}

int journal_write(struct page_store *store, uint64_t first, uint32_t count, const uint8_t *pages)
{
    struct journal *journal = journal_of(store);
    if (count == 0 || count > STORE_MOST_PAGES) {
        return EINVAL;
    }
    if (!fill(store, journal, first, count, pages)) {
        return EIO;
    }
    CRASH_POINT("filled-journal");
    atomic_store_explicit(&journal->count, count, memory_order_release);
    CRASH_POINT("journal");
    int error = carry_out(store, journal, count);
    if (error != 0) {
        give_up(store, journal, count);
    }
    /* Lenders' copies last: as long as the rows are the former ones, so are the copies. */
    if (error == 0) {
        store->lender_writes += leases_write(&store->leases, first, count, journal->content);
    }
    atomic_store_explicit(&journal->count, 0, memory_order_release);
    CRASH_POINT("emptied");
    return error;
}

int journal_replay(struct page_store *store)
{
    struct journal *journal = journal_of(store);
    uint32_t count = atomic_load_explicit(&journal->count, memory_order_acquire);
    uint64_t pages = store->state->header->pages;
    if (count > STORE_MOST_PAGES || journal->first > pages || count > pages - journal->first) {
        return EBADMSG;
    }
    int error = count == 0 ? 0 : carry_out(store, journal, count);
    if (error == 0) {
        atomic_store_explicit(&journal->count, 0, memory_order_release);
    }
    return error;
}
