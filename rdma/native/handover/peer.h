/* A connection to the other data plane of a hand-over, encrypted and authenticated in both directions.
 *
 * Both sides have a session key, which their agents gave them. Each connection has keys of its own, one for each
 * direction, made of it and of random numbers of both sides; a message's nonce is its number, so none comes twice, and
 * a message that is missing, repeated, in another order or of another guest does not open. Messages have sizes that the
 * receiver knows. Calls return 0 or an errno: EBADMSG for what does not open. None allocates anything but peer_begin.
 */
#ifndef PONDSTACK_HANDOVER_PEER_H
#define PONDSTACK_HANDOVER_PEER_H

#include "protocol.h"

enum { WIRE_BYTES = MESSAGE_BYTES + TAG_BYTES };

struct peer {
    int fd; /* -1: not connected */
    struct sealer ours, theirs;
    uint64_t sent, received;  /* messages */
    uint8_t wire[WIRE_BYTES]; /* a message that has come in part */
    uint32_t got;
    uint8_t *staging; /* a payload and its tag */
};

/* Greet whoever is on a connected socket, which this takes over, also when it fails; `connects`: this side began. */
int peer_begin(struct peer *peer, int fd, const uint8_t key[KEY_BYTES], const char *guest, bool connects,
               uint64_t ends_ns);

/* Hang up; idempotent. */
void peer_end(struct peer *peer);

/* Send or receive a message, and its payload of at most MOST_PAYLOAD bytes. */
int peer_send(struct peer *peer, const void *from, uint32_t bytes, uint64_t ends_ns);
int peer_receive(struct peer *peer, void *into, uint32_t bytes, uint64_t ends_ns);

/* Take what is there of a message, without waiting: EAGAIN while it is not whole. */
int peer_look(struct peer *peer, uint8_t message[MESSAGE_BYTES]);

/* Ask for something, and receive the answer with its payload. */
int peer_ask(struct peer *peer, const struct peer_request *request, struct peer_answer *answer, void *payload,
             uint64_t ends_ns);

#endif
