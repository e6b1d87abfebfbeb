/* One NBD client of a device: takes what it sent, carries it out, and has what it is to be told. Pure but for the
 * device: whoever has the socket moves the bytes.
 *
 * Commands of a connection are carried out in order. Memory is bounded: one whole command in, one whole answer out;
 * nobody who does not read answers has further commands carried out.
 */
#ifndef PONDSTACK_BLOCK_CONNECTION_H
#define PONDSTACK_BLOCK_CONNECTION_H

#include "device.h"
#include "nbd.h"
#include "negotiation.h"

enum { CONNECTION_IN = NBD_COMMAND_BYTES + MOST_COMMAND_BYTES, CONNECTION_OUT = MOST_COMMAND_BYTES + 4096 };
enum connection_phase { SAYS_FLAGS, CHOOSES, COMMANDS, FINISHED };

struct nbd_connection {
    struct device *device;
    const char *name; /* of the export */
    enum connection_phase phase;
    uint32_t client_flags;
    uint32_t got;    /* bytes in `in` */
    uint32_t taken;  /* bytes of those that were carried out */
    uint32_t put;    /* bytes in `out` */
    bool misbehaved; /* it spoke no NBD */
    uint8_t in[CONNECTION_IN];
    uint8_t out[CONNECTION_OUT];
};

void connection_begin(struct nbd_connection *connection, struct device *device, const char *name);

/* Carry out what is whole, as far as there is room for answers. The caller has put bytes behind those of `in`, sends
 * those of `out`, and hangs up once the phase is FINISHED and all is sent. */
void connection_step(struct nbd_connection *connection);

/* Bytes of `out` were sent. */
void connection_sent(struct nbd_connection *connection, uint32_t bytes);

#endif
