/* Where the destination of a hand-over comes in: a thread that lets in who has the session key, so that nobody else
 * costs the pager's thread any time. Of several that come, the last one counts. */
#ifndef PONDSTACK_HANDOVER_DOOR_H
#define PONDSTACK_HANDOVER_DOOR_H

#include "peer.h"

#include <pthread.h>

enum { GREETING_MS = 1000, HOST_TEXT_BYTES = 64 };

struct door {
    int listener, stop_fd; /* -1: closed */
    pthread_t thread;
    uint8_t key[KEY_BYTES];
    char guest[UUID_BYTES];
    struct peer *_Atomic came;
    void (*tell)(void *whom); /* that somebody came */
    void *whom;
};

/* Listen on a numeric address and a port, 0: any. */
int door_open(struct door *door, const char *host, int port, struct problem *problem);

/* The port that it listens on. */
int door_port(const struct door *door);

/* Take who came last, by any one thread; NULL: nobody. It is freed by the caller, after peer_end. */
struct peer *door_take(struct door *door);

/* Let in nobody any more, and forget the key; idempotent. Takes up to GREETING_MS. */
void door_close(struct door *door);

#endif
