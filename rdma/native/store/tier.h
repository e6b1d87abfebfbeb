/* Where pages lie that are not in local memory: a tier has slots of one page each. One interface, one kind a file.
 *
 * All calls are synchronous: when `write` returns 0, the content outlives this process. They return 0 or an errno, and
 * allocate nothing. One thread at a time.
 */
#ifndef PONDSTACK_STORE_TIER_H
#define PONDSTACK_STORE_TIER_H

#include <stdint.h>

struct tier;

struct tier_type {
    const char *name;
    int (*read)(struct tier *tier, uint64_t slot, uint32_t count, void *into);
    int (*write)(struct tier *tier, uint64_t slot, uint32_t count, const void *from);
    /* Give the room of slots back; their content is gone. */
    int (*discard)(struct tier *tier, uint64_t slot, uint32_t count);
    void (*close)(struct tier *tier);
};

/* The first member of each kind of tier. */
struct tier {
    const struct tier_type *type;
};

#endif
