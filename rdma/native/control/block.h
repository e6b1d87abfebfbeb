/* A block device that this process serves, and all that belongs to it, from mirror to thread. For the control thread
 * only. */
#ifndef PONDSTACK_CONTROL_BLOCK_H
#define PONDSTACK_CONTROL_BLOCK_H

#include "../block/exporter.h"
#include "../store/file_tier.h"
#include "keeper.h"
#include "lender.h"

enum { BLOCK_PATH_BYTES = 512, BLOCK_PAGES_PER_MIB = 256, MOST_BLOCK_MIB = 1 << 23 };

/* What a block device is to be: what its record says, and a request to export. */
struct block_settings {
    char block[UUID_BYTES]; /* also the name of the export */
    char mirror[BLOCK_PATH_BYTES];
    char socket[BLOCK_PATH_BYTES];
    uid_t user; /* who may open the socket, besides root */
    uint32_t mib;
    uint32_t most_mib; /* what it can grow to */
    bool sealed;
    bool ending;
    struct keeper keeper; /* none: nothing was acknowledged yet */
};

struct block {
    struct block_settings settings;
    int memfd;
    struct shared_state state;
    struct file_tier mirror;
    struct page_store store;
    struct exporter exporter;
    struct lender *lenders;
    bool serves;
    struct problem problem;
    struct problem told; /* what the log has of it already */
};

/* Begin what is stored: a new table and mirror. */
int block_create(struct block *block);

/* Go on with what a killed process left. What is not there any more is not made up: its problem says so. */
int block_resume(struct block *block);

/* Begin to serve what was begun. */
int block_serve(struct block *block);

/* Stop serving; whoever uses it waits, until a next process serves. Idempotent. */
void block_stop(struct block *block);

/* Stop serving, and see that nobody ever reads what was written: the key is forgotten, mirror and keeper are gone. */
void block_destroy(struct block *block);

/* Have the mirror be as large as so many MiB; what is behind a new end is gone. */
int block_set_room(struct block *block, uint32_t mib, struct problem *problem);

/* Have the device be as large; refused while pages behind a new end are in use. `settings.mib` stays as it is. */
int block_set_size(struct block *block, uint32_t mib, struct problem *problem);

/* As guest_lease, guest_leave and guest_tidy. */
int block_lease(struct block *block, const struct lease_request *request, struct problem *problem);
bool block_leave(struct block *block, const char *lender, uint64_t number);
void block_tidy(struct block *block);

#endif
