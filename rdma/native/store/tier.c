#include "tier.h"

#include "sealer.h"

#include <stddef.h>

int tier_gather(struct tier *tier, const uint32_t *slots, uint32_t count, void *into)
{
    if (tier->type->gather != NULL) {
        return tier->type->gather(tier, slots, count, into);
    }
    int error = 0;
    for (uint32_t at = 0; at < count && error == 0; at++) {
        error = tier->type->read(tier, slots[at], 1, (char *)into + (size_t)at * PAGE_BYTES);
    }
    return error;
}

int tier_scatter(struct tier *tier, const uint32_t *slots, uint32_t count, const void *from)
{
    if (tier->type->scatter != NULL) {
        return tier->type->scatter(tier, slots, count, from);
    }
    int error = 0;
    for (uint32_t at = 0; at < count && error == 0; at++) {
        error = tier->type->write(tier, slots[at], 1, (const char *)from + (size_t)at * PAGE_BYTES);
    }
    return error;
}
