/* The block devices of this process, and their records. For the control thread only. */
#ifndef PONDSTACK_CONTROL_BLOCKS_H
#define PONDSTACK_CONTROL_BLOCKS_H

#include "block.h"

enum { MOST_BLOCKS = 256 };

struct blocks {
    const char *folder;
    uint32_t count;
    struct block *list[MOST_BLOCKS];
};

/* Go on with all that have a record. */
void blocks_begin(struct blocks *blocks, const char *folder);

struct block *blocks_find(const struct blocks *blocks, const char *block);

/* Export a block device, which gets a record; the same settings again are no error. */
int blocks_export(struct blocks *blocks, const struct block_settings *settings, struct problem *problem);

int blocks_resize(struct blocks *blocks, struct block *block, uint32_t mib, struct problem *problem);

/* End an export, and all that it stored. The block is gone when this returns 0. */
int blocks_unexport(struct blocks *blocks, struct block *block, struct problem *problem);

/* Now and then: replace keepers that were killed, and try again what failed. */
void blocks_look(struct blocks *blocks);

/* Stop serving all. */
void blocks_end(struct blocks *blocks);

#endif
