#include "page_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int store_begin(struct page_store *store, struct shared_state *state, struct tier *mirror, struct problem *problem)
{
    *store = (struct page_store){.state = state, .mirror = mirror, .sealed = state->header->sealed != 0};
    store->staging = aligned_alloc(PAGE_BYTES, (size_t)STORE_MOST_PAGES * PAGE_BYTES);
    if (store->staging == NULL || !leases_begin(&store->leases, state->header->pages, &fifo_policy)) {
        store_end(store);
        return problem_set(problem, "no memory for %d pages", STORE_MOST_PAGES);
    }
    if (store->sealed && sealer_begin(&store->sealer, state->header->key, state->header->guest, problem) != 0) {
        store_end(store);
        return -1;
    }
    return 0;
}

void store_end(struct page_store *store)
{
    sealer_end(&store->sealer);
    leases_end(&store->leases);
    free(store->staging);
    store->staging = NULL;
}

/* The version after this one, of this data plane's tenure. 0: there is none. */
static uint64_t next_version(const struct page_store *store, uint64_t version)
{
    uint64_t tenure = atomic_load_explicit(&store->state->header->tenure, memory_order_relaxed);
    uint64_t next = version >> COUNT_BITS == tenure ? version + 1 : (tenure << COUNT_BITS) + 1;
    return next >> COUNT_BITS == tenure ? next : 0;
}

/* Seal pages into the staging memory, and write their rows but for the place. */
static bool seal(struct page_store *store, uint64_t first, uint32_t count, const uint8_t *pages)
{
    for (uint32_t at = 0; at < count; at++) {
        struct page_row *row = &store->state->rows[first + at];
        size_t offset = (size_t)at * PAGE_BYTES;
        /* A version is written down before it is used: whoever goes on after this process's death never uses it too. */
        uint64_t version = next_version(store, row->version);
        if (version == 0) {
            return false;
        }
        row->version = version;
        atomic_signal_fence(memory_order_seq_cst);
        if (!sealer_seal(&store->sealer, first + at, row->version, pages + offset, store->staging + offset, row->tag)) {
            return false;
        }
    }
    return true;
}

/* Seal pages, write them, and set their places. */
static int put(struct page_store *store, uint64_t first, uint32_t count, const uint8_t *pages)
{
    if (store->sealed && !seal(store, first, count, pages)) {
        return EIO;
    }
    const uint8_t *written = store->sealed ? store->staging : pages;
    store->lender_writes += leases_write(&store->leases, first, count, written);
    int error = store->mirror->type->write(store->mirror, first, count, written);
    for (uint32_t at = 0; at < count && error == 0; at++) {
        atomic_store_explicit(&store->state->rows[first + at].place, IN_MIRROR, memory_order_release);
    }
    return error;
}

int store_write(struct page_store *store, uint64_t first, uint32_t count, const uint8_t *pages)
{
    if (count > STORE_MOST_PAGES) {
        return EINVAL;
    }
    /* No row is found while it is half written. The guest's memory has these pages meanwhile, so none is needed. */
    for (uint32_t at = 0; at < count; at++) {
        store_drop(store, first + at);
    }
    return put(store, first, count, pages);
}

int store_take_in(struct page_store *store, uint64_t first, uint32_t count, const uint8_t *pages)
{
    if (count > STORE_MOST_PAGES) {
        return EINVAL;
    }
    for (uint32_t at = 0; at < count; at++) {
        leases_drop(&store->leases, first + at); /* of a former try */
    }
    return put(store, first, count, pages);
}

static bool open_page(struct page_store *store, uint64_t number, uint8_t *page)
{
    const struct page_row *row = &store->state->rows[number];
    return !store->sealed || sealer_open(&store->sealer, number, row->version, page, page, row->tag);
}

/* Open a page that a lender gave. */
static bool open_lent(struct page_store *store, uint64_t number, uint8_t *page)
{
    bool good = open_page(store, number, page);
    store->lender_reads += good;
    store->corrupt += !good;
    return good;
}

/* Fetch adjacent pages from the mirror. */
static int read_mirror(struct page_store *store, uint64_t first, uint32_t count, uint8_t *into)
{
    int error = count == 0 ? 0 : store->mirror->type->read(store->mirror, first, count, into);
    for (uint32_t at = 0; at < count && error == 0; at++) {
        error = open_page(store, first + at, into + (size_t)at * PAGE_BYTES) ? 0 : EBADMSG;
    }
    store->mirror_reads += error == 0 ? count : 0;
    return error;
}

/* Fetch adjacent pages that are in the store of this host. */
static int read_here(struct page_store *store, uint64_t first, uint32_t count, uint8_t *into)
{
    int error = 0;
    uint32_t behind = 0; /* the pages from here to `at` no lender gives */
    for (uint32_t at = 0; at < count && error == 0;) {
        uint32_t given = leases_read(&store->leases, first + at, count - at, into + (size_t)at * PAGE_BYTES);
        for (uint32_t end = at + (given > 0 ? given : 1); at < end && error == 0; at++) {
            if (given > 0 && open_lent(store, first + at, into + (size_t)at * PAGE_BYTES)) {
                error = read_mirror(store, first + behind, at - behind, into + (size_t)behind * PAGE_BYTES);
                behind = at + 1;
            }
        }
    }
    return error != 0 ? error : read_mirror(store, first + behind, count - behind, into + (size_t)behind * PAGE_BYTES);
}

/* Where the source has a page with a lender, and this data plane knows the slot. */
static bool is_lent(const struct page_store *store, uint64_t page)
{
    return atomic_load_explicit(&store->state->rows[page].place, memory_order_relaxed) == LENT_AT_SOURCE;
}

/* Have the source give a page that a lender has: it cannot be had there. */
static void copy_lent(struct page_store *store, uint64_t page)
{
    leases_drop(&store->leases, page);
    atomic_store_explicit(&store->state->rows[page].place, STORED_AT_SOURCE, memory_order_release);
    store->handed_copied++;
}

bool store_refer(struct page_store *store, uint64_t page, const uint8_t buffer[BUFFER_ID_BYTES], uint32_t slot,
                 uint64_t version, const uint8_t tag[TAG_BYTES])
{
    struct page_row *row = &store->state->rows[page];
    if (!leases_refer(&store->leases, page, buffer, slot)) {
        copy_lent(store, page);
        return false;
    }
    row->version = version;
    memcpy(row->tag, tag, TAG_BYTES);
    store->handed++;
    return true;
}

bool store_adopt(struct page_store *store, const uint8_t key[KEY_BYTES], uint64_t tenure)
{
    struct state_header *header = store->state->header;
    if (atomic_load(&header->adopted) == 0) {
        memcpy(header->key, key, KEY_BYTES);
        atomic_store(&header->tenure, tenure);
        atomic_store(&header->adopted, 1); /* last: a process that dies before asks for another tenure */
    }
    return !store->sealed || sealer_rekey(&store->sealer, header->key);
}

/* Read adjacent pages as far as lenders give them that have them for the source; `sealed`: where not NULL, as they are
 * there. 0: the source is to give the first one. */
static uint32_t read_lent(struct page_store *store, uint64_t first, uint32_t count, uint8_t *into, uint8_t *sealed)
{
    uint32_t lent = 0, slot;
    uint64_t place = atomic_load_explicit(&store->state->rows[first].place, memory_order_relaxed);
    bool known = place == LENT_AT_SOURCE && leases_where(&store->leases, first, &slot) != NULL;
    if ((place == AT_SOURCE || place == LENT_AT_SOURCE) && !known && store->source->refer(store->source, first) != 0) {
        return 0;
    }
    while (lent < count && is_lent(store, first + lent)) {
        lent++;
    }
    uint32_t given = lent == 0 ? 0 : leases_read(&store->leases, first, lent, into);
    if (given > 0 && sealed != NULL) {
        memcpy(sealed, into, (size_t)given * PAGE_BYTES);
    }
    for (uint32_t at = 0; at < given; at++) {
        if (!open_lent(store, first + at, into + (size_t)at * PAGE_BYTES)) {
            copy_lent(store, first + at);
            return at;
        }
    }
    if (given == 0 && lent > 0) {
        copy_lent(store, first);
    }
    return given;
}

/* Fetch adjacent pages that another data plane has, of their lenders where it has them there. */
static int read_away(struct page_store *store, uint64_t first, uint32_t count, uint8_t *into)
{
    for (uint32_t at = 0, run; at < count; at += run) {
        uint8_t *to = into + (size_t)at * PAGE_BYTES;
        run = read_lent(store, first + at, count - at, to, NULL);
        if (run > 0) {
            continue;
        }
        for (run = 1; at + run < count && !is_lent(store, first + at + run); run++) {
        }
        int error = store->source->fetch(store->source, first + at, run, to);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

int store_mirror_lent(struct page_store *store, uint64_t first, uint32_t count, uint8_t *scratch)
{
    uint32_t given = read_lent(store, first, count, scratch, store->staging);
    int error = given == 0 ? 0 : store->mirror->type->write(store->mirror, first, given, store->staging);
    for (uint32_t at = 0; at < given && error == 0; at++) {
        atomic_store_explicit(&store->state->rows[first + at].place, IN_MIRROR, memory_order_release);
    }
    return error;
}

uint32_t store_know_lent(struct page_store *store, uint64_t first, uint32_t count)
{
    uint32_t lent = 0, slot;
    bool known = is_lent(store, first) && leases_where(&store->leases, first, &slot) != NULL;
    if (!known && store->source->refer(store->source, first) != 0) {
        return 0;
    }
    while (lent < count && is_lent(store, first + lent) && leases_where(&store->leases, first + lent, &slot) != NULL) {
        lent++;
    }
    return lent;
}

int store_mirror_former(struct page_store *store, struct tier *former, uint64_t first, uint32_t count, uint8_t *scratch)
{
    struct tier *mirror = store->mirror;
    int error = mirror->type->copy == NULL ? EOPNOTSUPP : mirror->type->copy(mirror, former, first, count);
    error = error != 0 ? error : mirror->type->read(mirror, first, 1, scratch);
    if (error == 0 && !open_page(store, first, scratch)) {
        error = EBADMSG;
    }
    for (uint32_t at = 0; at < count && error == 0; at++) {
        atomic_store_explicit(&store->state->rows[first + at].place, IN_MIRROR, memory_order_release);
        store->mirror_copied++;
    }
    return error;
}

int store_read(struct page_store *store, uint64_t first, uint32_t count, uint8_t *into)
{
    int error = 0;
    for (uint32_t at = 0, run; at < count && error == 0; at += run) {
        bool away = store->source != NULL && store_at_source(store, first + at);
        for (run = 1; at + run < count && store->source != NULL &&
                      store_at_source(store, first + at + run) == away;
             run++) {
        }
        run = store->source == NULL ? count : run;
        uint8_t *to = into + (size_t)at * PAGE_BYTES;
        error = away ? read_away(store, first + at, run, to)
                     : read_here(store, first + at, run, to);
    }
    return error;
}

void store_came_home(struct page_store *store, uint64_t page)
{
    if (store_at_source(store, page)) {
        store_drop(store, page); /* what is present is the truth */
        return;
    }
    leases_drop(&store->leases, page);
}

void store_drop(struct page_store *store, uint64_t page)
{
    leases_drop(&store->leases, page);
    atomic_store_explicit(&store->state->rows[page].place, NOT_STORED, memory_order_release);
}
