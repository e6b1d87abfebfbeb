/* Bytes of a block device, on the pages of a store. One thread at a time.
 *
 * What a call returned 0 for is found by the next process too. Pages that were never written, or were given up, read as
 * zeros. EIO: nobody has the newest content, and no other one is given for it.
 */
#ifndef PONDSTACK_BLOCK_DEVICE_H
#define PONDSTACK_BLOCK_DEVICE_H

#include "../pager/latency.h"
#include "../store/page_store.h"

/* What is counted. partial_pages: read and written again, since a write did not cover them; trims: commands that gave
 * pages up, or wrote zeros; refused: commands that are none; hang_ups: connections that spoke no NBD, or were silent.
 */
#define EACH_BLOCK_COUNTER(X) \
    X(connections)            \
    X(reads)                  \
    X(writes)                 \
    X(trims)                  \
    X(flushes)                \
    X(read_bytes)             \
    X(written_bytes)          \
    X(partial_pages)          \
    X(read_failures)          \
    X(write_failures)         \
    X(refused)                \
    X(hang_ups)

struct block_counters {
#define X(name) _Atomic uint64_t name;
    EACH_BLOCK_COUNTER(X)
#undef X
};

struct device {
    struct page_store *store;
    _Atomic uint64_t bytes;
    struct block_counters counters;
    struct latencies service; /* of commands, without the wire */
    uint8_t page[PAGE_BYTES]; /* a partial one, while it is written */
};

/* Whether bytes are all within the device. */
static inline bool device_has(const struct device *device, uint64_t offset, uint64_t bytes)
{
    uint64_t all = atomic_load(&device->bytes);
    return offset <= all && bytes <= all - offset;
}

/* Each on a range that the device has; 0 or an errno. */
int device_read(struct device *device, uint64_t offset, uint64_t bytes, uint8_t *into);
int device_write(struct device *device, uint64_t offset, uint64_t bytes, const uint8_t *from);

/* Give up the whole pages of a range: they read as zeros, and their room is the host's. */
int device_trim(struct device *device, uint64_t offset, uint64_t bytes);

/* Have a range read as zeros; with `keep_room`, pages can be written again without more room. */
int device_zero(struct device *device, uint64_t offset, uint64_t bytes, bool keep_room);

/* Whether a page at or after an offset is stored: whether the device can end there is asked so. */
bool device_uses(const struct device *device, uint64_t offset);

/* Once, after a death: give back the room of pages that were given up just then. */
void device_tidy(struct device *device);

#endif
