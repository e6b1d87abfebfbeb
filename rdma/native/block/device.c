#include "device.h"

#include "../pager/counters.h"
#include "../pager/crash_point.h"
#include "../store/journal.h"

#include <errno.h>
#include <string.h>

static int place_of(const struct device *device, uint64_t page)
{
    return (int)atomic_load_explicit(&device->store->state->rows[page].place, memory_order_acquire);
}

/* How many adjacent pages from one on, up to `most`, have the same place. */
static uint32_t run_length(const struct device *device, uint64_t first, uint64_t most)
{
    uint32_t count = 1;
    int place = place_of(device, first);
    while (count < most && count < STORE_MOST_PAGES && place_of(device, first + count) == place) {
        count++;
    }
    return count;
}

static int read_run(struct device *device, uint64_t first, uint32_t count, uint8_t *into)
{
    switch (place_of(device, first)) {
    case NOT_STORED:
        memset(into, 0, (size_t)count * PAGE_BYTES);
        return 0;
    case IN_MIRROR:
        return store_read(device->store, first, count, into);
    default:
        return EIO; /* its content was lost */
    }
}

static int read_pages(struct device *device, uint64_t first, uint64_t count, uint8_t *into)
{
    int error = 0;
    for (uint64_t done = 0; done < count && error == 0;) {
        uint32_t run = run_length(device, first + done, count - done);
        error = read_run(device, first + done, run, into + done * PAGE_BYTES);
        done += run;
    }
    return error;
}

/* The bytes of a range up to the next page's boundary, if it does not begin or end on one; 0: there is a whole page. */
static uint64_t partial(uint64_t offset, uint64_t bytes)
{
    uint64_t within = offset % PAGE_BYTES, left = PAGE_BYTES - within;
    return within == 0 && bytes >= PAGE_BYTES ? 0 : bytes < left ? bytes : left;
}

int device_read(struct device *device, uint64_t offset, uint64_t bytes, uint8_t *into)
{
    int error = 0;
    for (uint64_t done = 0; done < bytes && error == 0;) {
        uint64_t at = offset + done, size = partial(at, bytes - done);
        if (size > 0) {
            error = read_pages(device, at / PAGE_BYTES, 1, device->page);
            memcpy(into + done, device->page + at % PAGE_BYTES, size);
        } else {
            size = (bytes - done) / PAGE_BYTES * PAGE_BYTES;
            error = read_pages(device, at / PAGE_BYTES, size / PAGE_BYTES, into + done);
        }
        done += size;
    }
    COUNT(device->counters, read_failures, error != 0);
    return error;
}

/* Write a part of a page; `from` NULL: zeros. */
static int write_partial(struct device *device, uint64_t offset, uint64_t bytes, const uint8_t *from)
{
    int error = read_pages(device, offset / PAGE_BYTES, 1, device->page);
    if (error != 0) {
        return error;
    }
    if (from != NULL) {
        memcpy(device->page + offset % PAGE_BYTES, from, bytes);
    } else {
        memset(device->page + offset % PAGE_BYTES, 0, bytes);
    }
    COUNT(device->counters, partial_pages, 1);
    return journal_write(device->store, offset / PAGE_BYTES, 1, device->page);
}

int device_write(struct device *device, uint64_t offset, uint64_t bytes, const uint8_t *from)
{
    int error = 0;
    for (uint64_t done = 0; done < bytes && error == 0;) {
        uint64_t at = offset + done, size = partial(at, bytes - done);
        if (size > 0) {
            error = write_partial(device, at, size, from + done);
        } else {
            uint64_t pages = (bytes - done) / PAGE_BYTES;
            uint32_t run = pages < STORE_MOST_PAGES ? (uint32_t)pages : STORE_MOST_PAGES;
            error = journal_write(device->store, at / PAGE_BYTES, run, from + done);
            size = (uint64_t)run * PAGE_BYTES;
        }
        done += size;
    }
    COUNT(device->counters, write_failures, error != 0);
    return error;
}

static const uint8_t zeros[PAGE_BYTES];

/* Take the former content out of the mirror. */
static int erase(struct device *device, uint64_t first, uint64_t count, bool keep_room)
{
    struct tier *mirror = device->store->mirror;
    int error = 0;
    if (!keep_room) {
        for (uint64_t done = 0; done < count && error == 0; done += UINT32_MAX) {
            uint64_t left = count - done;
            error = mirror->type->discard(mirror, first + done, left < UINT32_MAX ? (uint32_t)left : UINT32_MAX);
        }
    }
    for (uint64_t at = 0; keep_room && at < count && error == 0; at++) {
        error = mirror->type->write(mirror, first + at, 1, zeros);
    }
    return error;
}

/* Give up pages. Their rows first: from then on, what they were is not found. */
static int drop_pages(struct device *device, uint64_t first, uint64_t count, bool keep_room)
{
    for (uint64_t at = 0; at < count; at++) {
        store_drop(device->store, first + at);
    }
    CRASH_POINT("dropped");
    return count == 0 ? 0 : erase(device, first, count, keep_room);
}

int device_trim(struct device *device, uint64_t offset, uint64_t bytes)
{
    uint64_t first = offset / PAGE_BYTES + (offset % PAGE_BYTES != 0), end = (offset + bytes) / PAGE_BYTES;
    (void)drop_pages(device, first, end > first ? end - first : 0,
                     false); /* a file system that cannot keeps the room */
    return 0;
}

int device_zero(struct device *device, uint64_t offset, uint64_t bytes, bool keep_room)
{
    int error = 0;
    for (uint64_t done = 0; done < bytes && error == 0;) {
        uint64_t at = offset + done, size = partial(at, bytes - done);
        if (size > 0) {
            error = write_partial(device, at, size, NULL);
        } else {
            uint64_t pages = (bytes - done) / PAGE_BYTES;
            int failed = drop_pages(device, at / PAGE_BYTES, pages, keep_room);
            error = keep_room ? failed : 0;
            size = pages * PAGE_BYTES;
        }
        done += size;
    }
    COUNT(device->counters, write_failures, error != 0);
    return error;
}

bool device_uses(const struct device *device, uint64_t offset)
{
    uint64_t pages = atomic_load(&device->bytes) / PAGE_BYTES;
    for (uint64_t page = offset / PAGE_BYTES; page < pages; page++) {
        if (place_of(device, page) != NOT_STORED) {
            return true;
        }
    }
    return false;
}

void device_tidy(struct device *device)
{
    uint64_t pages = atomic_load(&device->bytes) / PAGE_BYTES;
    for (uint64_t page = 0; page < pages; page++) {
        if (place_of(device, page) == NOT_STORED && device->store->state->rows[page].version != 0) {
            (void)erase(device, page, 1, false);
        }
    }
}
