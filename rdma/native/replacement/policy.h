/* Which page leaves local memory next. One interface, one policy a file; pure: no system call, no allocation, no clock.
 *
 * The caller gives a policy its memory (`size_bytes`), tells it of every page that becomes resident or ceases to be,
 * and asks for victims. A page is admitted only while it is not resident, and every victim was admitted. One thread at
 * a time.
 */
#ifndef PONDSTACK_REPLACEMENT_POLICY_H
#define PONDSTACK_REPLACEMENT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_PAGE UINT32_MAX

/* Whether a page was accessed since this was last asked of it: a hypervisor's "accessed" bit, tested and cleared. */
typedef bool (*accessed_function)(void *context, uint32_t page);

struct policy_type {
    const char *name;
    uint32_t default_parameter; /* 0: it has none */
    size_t (*size_bytes)(uint32_t pages);
    /* Begin with no page resident. `memory` is zeroed, and aligned as malloc's. */
    void (*begin)(void *memory, uint32_t pages, uint32_t parameter);
    void (*admit)(void *memory, uint32_t page);
    /* A page is not resident any more, although it was no victim. */
    void (*forget)(void *memory, uint32_t page);
    /* Choose a page, which is not resident from now on; NO_PAGE when none is. */
    uint32_t (*victim)(void *memory, accessed_function accessed, void *context);
};

extern const struct policy_type fifo_policy, clock_policy, mixed_policy, s3_fifo_policy;

/* Return the policy with a name; NULL when there is none. */
const struct policy_type *policy_named(const char *name);

/* Return the names of all policies, for messages: "fifo, clock, ...". */
const char *policy_names(void);

#endif
