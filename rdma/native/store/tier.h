/* Where pages lie that are not in local memory: a tier has slots of one page each. One interface, one kind a file.
 *
 * All calls are synchronous: when `write` or `scatter` returns 0, the content outlives this process, and whatever is
 * read later is it. They return 0 or an errno, allocate nothing, and take no longer than a tier's deadline, if it has
 * one. After an error of a write, the slots may have anything in them. One thread at a time.
 */
#ifndef PONDSTACK_STORE_TIER_H
#define PONDSTACK_STORE_TIER_H

#include <stdint.h>

enum { TIER_MOST_SLOTS = 64 }; /* in one call of gather or scatter */

struct tier;

struct tier_type {
    const char *name;
    int (*read)(struct tier *tier, uint64_t slot, uint32_t count, void *into);
    int (*write)(struct tier *tier, uint64_t slot, uint32_t count, const void *from);
    /* Read and write slots that need not be adjacent, in order; the memory is. NULL: there is nothing to be gained by
     * doing it at once. */
    int (*gather)(struct tier *tier, const uint32_t *slots, uint32_t count, void *into);
    int (*scatter)(struct tier *tier, const uint32_t *slots, uint32_t count, const void *from);
    /* Give the room of slots back; their content is gone. */
    int (*discard)(struct tier *tier, uint64_t slot, uint32_t count);
    /* Of a file, NULL elsewhere: have other hosts that share its file system see the content of slots; and have slots
     * be what another tier of the same kind has there, copied by the file system. */
    int (*publish)(struct tier *tier, uint64_t slot, uint32_t count);
    int (*copy)(struct tier *tier, struct tier *from, uint64_t slot, uint32_t count);
    void (*close)(struct tier *tier);
};

/* The first member of each kind of tier. */
struct tier {
    const struct tier_type *type;
};

/* Read and write slots, one by one where the kind of tier has nothing better. */
int tier_gather(struct tier *tier, const uint32_t *slots, uint32_t count, void *into);
int tier_scatter(struct tier *tier, const uint32_t *slots, uint32_t count, const void *from);

#endif
