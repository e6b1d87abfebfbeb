/* The calls of userfaultfd(2) on one range of memory of another process. All return 0, or an errno. */
#ifndef PONDSTACK_PAGER_USERFAULT_H
#define PONDSTACK_PAGER_USERFAULT_H

#include <stdbool.h>
#include <stdint.h>

/* Agree on features, unless that was done in an earlier life, and register the range for missing pages and writes. */
int userfault_register(int fd, uint64_t address, uint64_t bytes);

/* Let go of the range; its holes read as zeros from now on. Whoever waits goes on, also who gives pages up. The fd is
 * one that does not block. */
int userfault_unregister(int fd, uint64_t address, uint64_t bytes);

/* Fill holes with pages, and wake who waits for them; where `forbid`, nobody may write to them. `done`: how many bytes
 * were filled, also when it fails. */
int userfault_copy(int fd, uint64_t address, const void *from, uint64_t bytes, bool forbid, uint64_t *done);

/* Fill a hole with zeros, and wake who waits for it. */
int userfault_zero(int fd, uint64_t address, uint64_t bytes);

/* Forbid writes, or allow them again and wake who waits. */
int userfault_protect(int fd, uint64_t address, uint64_t bytes, bool forbid);

/* Have whoever waits in the range try again. */
int userfault_wake(int fd, uint64_t address, uint64_t bytes);

#endif
