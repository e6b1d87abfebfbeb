/* One system call that another process carries out without knowing: how a stock QEMU gets a userfaultfd and a memfd.
 *
 * A child process does it and ends: whoever kills the data plane meanwhile does not leave the other process half way,
 * with registers that are not its own.
 */
#ifndef PONDSTACK_PAGER_INJECTION_H
#define PONDSTACK_PAGER_INJECTION_H

#include "target.h"

/* Have the target's main thread call userfaultfd(2); the number of the descriptor in the target, or -1. */
int inject_userfaultfd(const struct target *target, struct problem *problem);

/* The same with memfd_create(2). */
int inject_memfd(const struct target *target, const char *name, struct problem *problem);

/* Have it call madvise(2) for its memory. */
int inject_advice(const struct target *target, const struct memory *memory, int advice, struct problem *problem);

/* Stop each of its threads once, for a moment: system calls that were under way have ended after that. 0, or -1. */
int inject_barrier(const struct target *target, struct problem *problem);

#endif
