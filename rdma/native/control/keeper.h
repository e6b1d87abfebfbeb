/* A process that holds the memfd of a block device, so that it outlives the data plane: key, versions, map, journal;
 * or that of a guest that was handed over, and the file that was its memory.
 *
 * It does nothing else, and knows nothing: `pondstack-data-plane keep`. It has no memory of the data plane's. No signal
 * but SIGKILL reaches it, which the data plane sends that ends the export. On disk is nothing of what it holds, and the
 * page with the key is locked.
 */
#ifndef PONDSTACK_CONTROL_KEEPER_H
#define PONDSTACK_CONTROL_KEEPER_H

#include "../store/problem.h"

#include <stdbool.h>
#include <stdint.h>

/* By which a later process finds it. */
struct keeper {
    int pid; /* 0: none */
    uint64_t started;
};

/* Start one that holds a memfd, and another file (-1: none): those, and nothing else, when this returns. `record` is a
 * JSON file that will name it, by the member `keeper`, its number. Until `keeper_confirm` is called with what this
 * returns (-1 and a problem: it was not started), it looks whether this process dies, and then whether the record names
 * it: else it ends, so that none is left that nobody knows of. */
int keeper_start(struct keeper *keeper, int memfd, int file, const char *record, struct problem *problem);
void keeper_confirm(int confirmation);

/* Return a duplicate of the memfd with a name that a keeper holds. */
int keeper_open(const struct keeper *keeper, const char *name, struct problem *problem);

/* The same of the other file. */
int keeper_open_file(const struct keeper *keeper, struct problem *problem);

bool keeper_lives(const struct keeper *keeper);

/* End it; idempotent. */
void keeper_end(const struct keeper *keeper);

/* What the process does. Returns when nobody knows of it. */
int keeper_run(const char *record);

#endif
