/* Calls of librdmacm that take more than one line: no Python in here. */
#ifndef PONDSTACK_PATH_H
#define PONDSTACK_PATH_H

#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>

/* What the connection manager chose, and what the two queue pairs know of each other. Numbers as verbs have them. */
typedef struct {
    union ibv_gid gid;
    uint32_t number, their_packet, our_packet;
    unsigned port, gid_index, mtu, reads, traffic_class;
} Path;

/* An address of IPv4 or IPv6 in text: 0, or an errno. */
int address_of(const char *text, int port, struct sockaddr_storage *address);

/* What is known once the other side's half is: 0, or an errno. `reads` is what may be under way from here and to here. */
int path_of(struct rdma_cm_id *id, Path *path);

/* Each sends one message of a connection, with private data; 0, or -1 with errno. `reads` 0: as many as the device can. */
int send_request(struct rdma_cm_id *id, uint32_t number, const void *data, size_t size);
int send_reply(struct rdma_cm_id *id, uint32_t number, unsigned reads, const void *data, size_t size);

#endif
