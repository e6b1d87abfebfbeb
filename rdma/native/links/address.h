/* Addresses as tickets have them, without asking any name server. No Python in here. */
#ifndef PONDSTACK_LINKS_ADDRESS_H
#define PONDSTACK_LINKS_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>

enum { HOST_BYTES = 64 };

/* Parse an IPv4 or IPv6 address. Return 0 or an errno. */
int address_of(const char *text, int port, struct sockaddr_storage *address);

/* Split HOST:PORT at the last colon. Return 0 or an errno. */
int address_split(const char *text, char host[HOST_BYTES], int *port);

#endif
