#define _GNU_SOURCE
#include "faults.h"

#include "crash_point.h"
#include "eviction.h"
#include "residency.h"
#include "userfault.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_AT_ONCE = 32, INLINE_PAGES = 4 };
static const uint8_t zeros[PAGE_BYTES];
static const struct timespec STORE_FULL_PAUSE = {.tv_nsec = 1000000};

static uint64_t address_of(const struct pager *pager, uint32_t page)
{
    return pager->memory.address + (uint64_t)page * PAGE_BYTES;
}

static void wake(struct pager *pager, uint32_t page)
{
    userfault_wake(pager->userfault_fd, address_of(pager, page), PAGE_BYTES);
}

static uint32_t room(const struct pager *pager)
{
    uint32_t limit = atomic_load_explicit(&pager->limit_pages, memory_order_relaxed);
    uint32_t resident = atomic_load_explicit(&pager->resident_pages, memory_order_relaxed);
    return limit > resident ? limit - resident : 0;
}

/* See that a chunk can come in. Where nothing can leave, since the store fails, the guest is slowed down and goes on. */
static void make_room(struct pager *pager)
{
    if (atomic_load(&pager->order) != ORDER_SERVE || pager->frozen) {
        return;
    }
    while (room(pager) < pager->chunk) {
        if (evict(pager, INLINE_PAGES) > 0) {
            continue;
        }
        if (room(pager) == 0) {
            COUNT(pager->counters, over_limit, 1);
            nanosleep(&STORE_FULL_PAUSE, NULL);
        }
        return;
    }
}

/* After a call that filled nothing: the page came in another way, or the guest's mapping is changing. */
static void settle(struct pager *pager, uint32_t page, int error)
{
    if (error == EEXIST && !is_resident(pager, page)) {
        residency_add(pager, page);
    }
    if (error == EEXIST || error == EAGAIN) {
        wake(pager, page); /* it looks again, and asks again if need be */
    }
}

static void fill_with_zeros(struct pager *pager, uint32_t page)
{
    uint64_t at = address_of(pager, page), done;
    int error = pager->frozen ? userfault_copy(pager->userfault_fd, at, zeros, PAGE_BYTES, true, &done)
                              : userfault_zero(pager->userfault_fd, at, PAGE_BYTES);
    if (error != 0) {
        settle(pager, page, error);
        return;
    }
    COUNT(pager->counters, zero_fills, 1);
    if (!is_resident(pager, page)) {
        residency_add(pager, page);
    }
}

/* Fetch adjacent stored pages, of which one is needed, and fill their holes. How many came in. */
static uint32_t load(struct pager *pager, uint32_t first, uint32_t count, uint32_t needed)
{
    uint64_t filled = 0;
    if (store_read(pager->store, first, count, pager->buffer) != 0) {
        if (count > 1) {
            return load(pager, needed, 1, needed); /* only that one may be counted as failed */
        }
        COUNT(pager->counters, read_failures, 1);
        pager->retry = true;
        return 0;
    }
    CRASH_POINT("fetched");
    int error = userfault_copy(pager->userfault_fd, address_of(pager, first), pager->buffer,
                               (uint64_t)count * PAGE_BYTES, pager->frozen, &filled);
    CRASH_POINT("filled");
    uint32_t came = (uint32_t)(filled / PAGE_BYTES);
    for (uint32_t at = 0; at < came; at++) {
        residency_add(pager, first + at);
        store_came_home(pager->store, first + at);
    }
    if (error != 0 && came < count) {
        settle(pager, first + came, error);
    }
    COUNT(pager->counters, loads, came);
    return came;
}

static bool is_stored(const struct pager *pager, uint32_t page)
{
    return !is_resident(pager, page) && store_has(pager->store, page);
}

/* Fetch a missing page, what is stored next to it in its chunk, and what a sequential run is to have ahead; as much as
 * there is room for. How many came in from the page on. */
static uint32_t load_run(struct pager *pager, uint32_t page)
{
    uint32_t first = page, begin = page - page % pager->chunk, most = room(pager), count = 1;
    uint32_t end = page + read_ahead_wanted(&pager->read_ahead, page);
    while (first > begin && is_stored(pager, first - 1)) {
        first--;
    }
    if (page - first >= most) {
        first = page;
    }
    end = end > begin + pager->chunk ? end : begin + pager->chunk;
    end = end < pager->pages ? end : pager->pages;
    while (count < most && first + count < end && is_stored(pager, first + count)) {
        count++;
    }
    uint32_t came = load(pager, first, count, page);
    if (first < page && !is_resident(pager, page)) {
        load(pager, page, 1, page); /* one before it had come in another way */
    }
    COUNT(pager->counters, read_ahead, came > 1 ? came - 1 : 0);
    return first + came > page ? first + came - page : 0;
}

static void serve_missing(struct pager *pager, uint32_t page)
{
    bool refault = residency_refault(pager, page);
    make_room(pager);
    COUNT(pager->counters, faults, 1);
    COUNT(pager->counters, refaults, refault);
    if (store_has(pager->store, page)) {
        read_ahead_came(&pager->read_ahead, page, load_run(pager, page));
    } else {
        fill_with_zeros(pager, page);
    }
    if (refault && is_resident(pager, page)) {
        pager->flags[page] |= ACCESSED;
    }
}

/* A thread waits for a page that is in local memory by what we know: it came meanwhile, or was discarded unseen. */
static void serve_resident(struct pager *pager, uint32_t page, bool write_protected)
{
    if (write_protected) {
        pager->flags[page] |= ACCESSED;
        if (!pager->frozen) { /* else it waits until nobody is */
            userfault_protect(pager->userfault_fd, address_of(pager, page), PAGE_BYTES, false);
        }
    } else {
        fill_with_zeros(pager, page);
    }
    COUNT(pager->counters, already, 1);
}

static void serve_fault(struct pager *pager, uint64_t address, uint64_t flags)
{
    bool write_protected = (flags & UFFD_PAGEFAULT_FLAG_WP) != 0;
    if (address < pager->memory.address || address - pager->memory.address >= pager->memory.bytes) {
        return;
    }
    uint32_t page = (uint32_t)((address - pager->memory.address) / PAGE_BYTES);
    COUNT(pager->counters, write_races, write_protected);
    if (is_resident(pager, page)) {
        serve_resident(pager, page, write_protected);
    } else {
        serve_missing(pager, page);
    }
}

/* The guest gives pages up: their holes read as zeros from now on. */
static void serve_discard(struct pager *pager, uint64_t start, uint64_t end)
{
    uint64_t begin = pager->memory.address, limit = begin + pager->memory.bytes;
    for (uint64_t at = start < begin ? begin : start; at < end && at < limit; at += PAGE_BYTES) {
        uint32_t page = (uint32_t)((at - begin) / PAGE_BYTES);
        if (is_resident(pager, page)) {
            pager->policy->forget(pager->policy_memory, page);
            residency_remove(pager, page);
        } else if (store_has(pager->store, page)) {
            residency_dropped(pager);
        }
        store_drop(pager->store, page);
        pager->evicted_at[page] = 0;
        COUNT(pager->counters, discards, 1);
    }
}

uint32_t take_home(struct pager *pager, uint32_t first, uint32_t count)
{
    return load(pager, first, count, first);
}

/* Serve those of the events that are discards, or those that are faults. */
static void serve_all(struct pager *pager, const struct uffd_msg *events, int count, bool discards)
{
    uint64_t begun = clock_ns();
    for (int at = 0; at < count; at++) {
        const struct uffd_msg *event = &events[at];
        bool discard = event->event == UFFD_EVENT_REMOVE || event->event == UFFD_EVENT_UNMAP;
        if (discard != discards) {
            continue;
        }
        if (discard) {
            serve_discard(pager, event->arg.remove.start, event->arg.remove.end);
        } else if (event->event == UFFD_EVENT_PAGEFAULT) {
            serve_fault(pager, event->arg.pagefault.address, event->arg.pagefault.flags);
        }
        uint64_t now = clock_ns();
        latency_record(&pager->service, now - begun);
        begun = now;
    }
}

int serve_events(struct pager *pager)
{
    struct uffd_msg events[EVENTS_AT_ONCE];
    if (pager->userfault_fd < 0) {
        return 0; /* only what is left of a guest is served, whose process is elsewhere */
    }
    ssize_t got = read(pager->userfault_fd, events, sizeof events);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    int count = (int)((size_t)got / sizeof *events);
    CRASH_POINT("read");
    /* Whoever gives pages up goes on once its event is read: they have to be forgotten before a page next to them is
     * asked for, or what they had would come back with it. */
    serve_all(pager, events, count, true);
    serve_all(pager, events, count, false);
    return count;
}

bool bring_home(struct pager *pager, uint32_t *cursor)
{
    while (*cursor < pager->pages && !is_stored(pager, *cursor)) {
        (*cursor)++;
    }
    uint32_t count = 0;
    while (count < STORE_MOST_PAGES && *cursor + count < pager->pages && is_stored(pager, *cursor + count)) {
        count++;
    }
    if (count == 0) {
        return false;
    }
    load(pager, *cursor, count, *cursor); /* what did not come is found again by the next call */
    return true;
}
