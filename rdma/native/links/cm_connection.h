/* The borrower's side of a connection by librdmacm, as pondstack_rdma/verbs/connection.py has it. For the control
 * thread; the descriptor is looked at by the pager's thread too. */
#ifndef PONDSTACK_LINKS_CM_CONNECTION_H
#define PONDSTACK_LINKS_CM_CONNECTION_H

#include "../store/problem.h"
#include "cm_attrs.h"

enum { RESPONSE_BYTES = 196 };

struct cm_connection {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    const char *lender; /* its name and its address, for texts */
    const char *address;
    uint64_t ends_ns; /* by when all steps together are to be done */
};

/* Resolve the lender's address, which chooses a device, and the route. The caller has set the last three members, and the
 * rest to zero. After an error the caller closes it, too. */
int cm_connection_resolve(struct cm_connection *connection, struct problem *problem);

/* The name of the device that leads to the lender. */
const char *cm_connection_device(const struct cm_connection *connection);

/* Request a connection for a queue pair, and get the private data of the response, or the refusal. */
int cm_connection_request(struct cm_connection *connection, uint32_t qpn, const void *data, size_t size,
                          unsigned char response[RESPONSE_BYTES], struct problem *problem);

/* Acknowledge the response: the queue pair is connected. From then on the descriptor is readable when the lender has
 * ended. */
int cm_connection_establish(struct cm_connection *connection, struct problem *problem);

/* Disconnect; idempotent. */
void cm_connection_close(struct cm_connection *connection);

#endif
