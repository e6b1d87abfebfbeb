/* Bytes over a connected socket, each call by a deadline on the monotonic clock. Return 0 or an errno: ETIMEDOUT at the
 * deadline, ECONNRESET when the other side hung up. No call allocates anything. */
#ifndef PONDSTACK_LINKS_WIRE_H
#define PONDSTACK_LINKS_WIRE_H

#include "../store/problem.h"

#include <stddef.h>
#include <stdint.h>

uint64_t wire_now_ns(void);

/* The deadline so many milliseconds from now. */
uint64_t wire_deadline(uint32_t milliseconds);

/* Make a socket of the family of an address, for wire_connect; -1 and an errno. */
int wire_socket(const char *host);
int wire_connect(int fd, const char *host, int port, uint64_t ends_ns);

int wire_send(int fd, const void *from, size_t bytes, uint64_t ends_ns);
int wire_receive(int fd, void *into, size_t bytes, uint64_t ends_ns);

#endif
