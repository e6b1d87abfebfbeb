/* The order in which a page leaves, so that a death at any instruction costs no content:
 *
 * 1. write-protect it: from here on the copy is what the guest has, and a write waits;
 * 2. copy it to the store, and wait until it would outlive this process;
 * 3. set its place in the shared state: a hole here means that place from now on;
 * 4. punch the hole.
 *
 * Dead before 4, its data is present, and that is believed. Whoever waits for a write has an event in the userfaultfd,
 * which is read later, finds the page gone, and brings it back.
 */
#define _GNU_SOURCE
#include "eviction.h"

#include "crash_point.h"
#include "residency.h"
#include "userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Adjacent victims, which are handled together. */
struct run {
    uint32_t first;
    uint32_t count;
};

static uint64_t address_of(const struct pager *pager, uint32_t page)
{
    return pager->memory.address + (uint64_t)page * PAGE_BYTES;
}

static void insert(uint32_t *victims, uint32_t *count, uint32_t page)
{
    uint32_t at = (*count)++;
    for (; at > 0 && victims[at - 1] > page; at--) {
        victims[at] = victims[at - 1];
    }
    victims[at] = page;
}

static bool is_among(const uint32_t *victims, uint32_t count, uint32_t page)
{
    for (uint32_t at = 0; at < count; at++) {
        if (victims[at] == page) {
            return true;
        }
    }
    return false;
}

/* What is resident of a victim's chunk leaves with it, unless it was accessed. */
static void take_along(struct pager *pager, uint32_t *victims, uint32_t *count, uint32_t wanted, uint32_t victim)
{
    uint32_t begin = victim - victim % pager->chunk;
    for (uint32_t page = begin; page < begin + pager->chunk && page < pager->pages && *count < wanted; page++) {
        bool idle = (pager->flags[page] & (RESIDENT | ACCESSED)) == RESIDENT;
        if (idle && !is_among(victims, *count, page)) {
            pager->policy->forget(pager->policy_memory, page);
            insert(victims, count, page);
        }
    }
}

/* Choose victims, in ascending order. */
static uint32_t choose(struct pager *pager, uint32_t *victims, uint32_t wanted)
{
    uint32_t count = 0;
    while (count < wanted) {
        uint32_t page = pager->policy->victim(pager->policy_memory, residency_accessed, pager);
        if (page == NO_PAGE) {
            break;
        }
        insert(victims, &count, page);
        take_along(pager, victims, &count, wanted, page);
    }
    return count;
}

static uint32_t join(const uint32_t *victims, uint32_t count, struct run *runs)
{
    uint32_t made = 0;
    for (uint32_t at = 0; at < count; at++) {
        if (made > 0 && runs[made - 1].first + runs[made - 1].count == victims[at]) {
            runs[made - 1].count++;
        } else {
            runs[made++] = (struct run){victims[at], 1};
        }
    }
    return made;
}

/* Read by the file, not by a mapping of this process: a page of a hole would be made by reading it there. */
bool copy_pages(const struct pager *pager, uint32_t first, uint32_t count, uint8_t *into)
{
    size_t done = 0, bytes = (size_t)count * PAGE_BYTES;
    off_t from = (off_t)(pager->memory.offset + (uint64_t)first * PAGE_BYTES);
    while (done < bytes) {
        ssize_t got = pread(pager->memory.fd, into + done, bytes - done, from + (off_t)done);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool punch(const struct pager *pager, struct run run)
{
    off_t at = (off_t)(pager->memory.offset + (uint64_t)run.first * PAGE_BYTES);
    int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    return fallocate(pager->memory.fd, mode, at, (off_t)run.count * PAGE_BYTES) == 0;
}

static bool send_out(struct pager *pager, struct run run)
{
    CRASH_POINT("protected");
    if (!copy_pages(pager, run.first, run.count, pager->buffer)) {
        return false;
    }
    CRASH_POINT("copied");
    if (store_write(pager->store, run.first, run.count, pager->buffer) != 0) {
        return false;
    }
    CRASH_POINT("stored");
    if (!punch(pager, run)) {
        return false;
    }
    CRASH_POINT("punched");
    for (uint32_t at = 0; at < run.count; at++) {
        residency_evicted(pager, run.first + at);
    }
    COUNT(pager->counters, evictions, run.count);
    return true;
}

/* They stay: their policy takes them back as new. */
static void keep(struct pager *pager, struct run run)
{
    for (uint32_t at = 0; at < run.count; at++) {
        pager->policy->admit(pager->policy_memory, run.first + at);
    }
    userfault_protect(pager->userfault_fd, address_of(pager, run.first), (uint64_t)run.count * PAGE_BYTES, false);
    COUNT(pager->counters, eviction_failures, run.count);
}

uint32_t evict(struct pager *pager, uint32_t wanted)
{
    uint32_t victims[BATCH_PAGES];
    struct run runs[BATCH_PAGES];
    uint64_t begun = clock_ns();
    wanted = wanted > pager->chunk ? wanted : pager->chunk;
    uint32_t count = choose(pager, victims, wanted < BATCH_PAGES ? wanted : BATCH_PAGES);
    uint32_t made = join(victims, count, runs), left = 0;
    bool protects[BATCH_PAGES];
    for (uint32_t at = 0; at < made; at++) {
        uint64_t bytes = (uint64_t)runs[at].count * PAGE_BYTES;
        protects[at] = userfault_protect(pager->userfault_fd, address_of(pager, runs[at].first), bytes, true) == 0;
    }
    for (uint32_t at = 0; at < made; at++) {
        if (protects[at] && send_out(pager, runs[at])) {
            left += runs[at].count;
        } else {
            keep(pager, runs[at]);
        }
    }
    if (left > 0) {
        latency_record(&pager->eviction, (clock_ns() - begun) / left);
    }
    return left;
}

uint32_t eviction_due(const struct pager *pager)
{
    uint32_t limit = atomic_load_explicit(&pager->limit_pages, memory_order_relaxed);
    uint32_t resident = atomic_load_explicit(&pager->resident_pages, memory_order_relaxed);
    uint32_t room = limit / 16 < 4 * BATCH_PAGES ? limit / 16 : 4 * BATCH_PAGES; /* ahead of need */
    if (limit >= pager->pages) {
        return 0; /* there is room for all of them */
    }
    return resident + room > limit ? resident + room - limit : 0;
}
