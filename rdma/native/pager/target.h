/* The process whose memory is paged, such as a QEMU: its identity, its descriptors, and the mapping that is its RAM. */
#ifndef PONDSTACK_PAGER_TARGET_H
#define PONDSTACK_PAGER_TARGET_H

#include "../store/problem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct target {
    pid_t pid;
    int pidfd;        /* readable once the process has ended */
    uint64_t started; /* clock ticks since boot: tells a process from a later one with its number */
};

/* A shared file mapping. */
struct memory {
    uint64_t address; /* in the target */
    uint64_t bytes;
    uint64_t offset; /* in the file */
    uint64_t inode;
    int fd;
};

/* Open a process. `started` 0: any; else it has to be the same one as then. */
int target_open(struct target *target, pid_t pid, uint64_t started, struct problem *problem);

/* Whether a process still is the one that began then. */
bool target_lives(pid_t pid, uint64_t started);

/* Whether a process was started with `-uuid GUEST`, as QEMU is. */
bool target_is_guest(pid_t pid, const char *guest);

void target_close(struct target *target);

/* Return what may have denied something, to end a problem's text with; "" after an error that is no denial. */
const char *target_denial(int error);

/* Find the one shared mapping whose path has `name` in it, and open its file. Adjacent mappings of a file are one. */
int target_memory(const struct target *target, const char *name, struct memory *memory, struct problem *problem);

/* Refuse memory with huge pages: a hole in one may keep the page, as zeros, where the kernel does not split it. */
int target_check_pages(const struct target *target, const struct memory *memory, struct problem *problem);

/* Return the number of the descriptor of the target whose link begins with `link`; -1 when there is none. */
int target_descriptor(const struct target *target, const char *link);

/* Return whether a descriptor of the target has a link that begins with `link`. */
bool target_has(const struct target *target, int number, const char *link);

/* Return a duplicate of a descriptor of the target. */
int target_duplicate(const struct target *target, int number, struct problem *problem);

/* Return the address of a `syscall` instruction in the target (its vDSO has one); 0 when there is none. */
uint64_t target_syscall_instruction(const struct target *target);

#endif
