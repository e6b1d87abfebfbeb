#include "policy.h"

#include <string.h>

static const struct policy_type *const types[] = {&fifo_policy, &clock_policy, &mixed_policy, &s3_fifo_policy};

const struct policy_type *policy_named(const char *name)
{
    for (size_t at = 0; at < sizeof types / sizeof *types; at++) {
        if (strcmp(types[at]->name, name) == 0) {
            return types[at];
        }
    }
    return NULL;
}

const char *policy_names(void)
{
    return "fifo, clock, mixed, s3-fifo";
}
