/* A tier in a file: the mirror on local storage, or a file of a tmpfs.
 *
 * A write is in the page cache when it returns. That outlives this process; it does not outlive the host, and neither
 * does the guest.
 */
#ifndef PONDSTACK_STORE_FILE_TIER_H
#define PONDSTACK_STORE_FILE_TIER_H

#include "problem.h"
#include "tier.h"

#include <stdbool.h>

struct file_tier {
    struct tier tier;
    int fd;
};

/* Open a file; a `fresh` one is made where it is missing, for its user only, while another one has to be there. Takes
 * the room of all slots at once, so that a full file system shows here and not under load; refuses a file that another
 * process uses. */
int file_tier_open(struct file_tier *made, const char *path, uint64_t slots, bool fresh, struct problem *problem);

/* Open a file again that may have holes: pages that were given up, whose room is the host's. */
int file_tier_reopen(struct file_tier *made, const char *path, uint64_t slots, struct problem *problem);

/* Open another data plane's file, to copy from it only; nobody is kept from writing there. */
int file_tier_open_former(struct file_tier *made, const char *path, uint64_t slots, struct problem *problem);

/* Have it so many slots: takes the room of new ones; the content of those that it loses is gone. */
int file_tier_resize(struct file_tier *file, uint64_t slots, struct problem *problem);

#endif
