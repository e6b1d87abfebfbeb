/* Serves one block device over NBD on a Unix socket: one thread, which carries out the commands of all its connections.
 *
 * The thread is the only one that uses device and store. What others may do: end it, ask for a sweep of leases, read
 * counters, and, while they hold `busy`, change the size.
 */
#ifndef PONDSTACK_BLOCK_EXPORTER_H
#define PONDSTACK_BLOCK_EXPORTER_H

#include "connection.h"

#include <pthread.h>
#include <sys/types.h>

enum { MOST_CONNECTIONS = 8 };

struct nbd_client {
    int fd; /* -1: free */
    uint64_t since_ns;
    struct nbd_connection *connection;
};

struct exporter {
    struct device device;
    const char *name;
    uid_t user;   /* who may open it besides root and this process's user */
    bool resumed; /* a killed process served it */
    int listener;
    int wake_fd; /* an eventfd: there is something to look at */
    pthread_t thread;
    pthread_mutex_t busy; /* held while a command is carried out */
    _Atomic bool stop;
    _Atomic bool sweep; /* leases are to be left */
    _Atomic uint32_t connected;
    struct nbd_client clients[MOST_CONNECTIONS];
};

/* Listen on a path, of which a socket of a killed process is removed, and begin to serve. The store has been replayed.
 * On failure nothing is held. */
int exporter_begin(struct exporter *exporter, struct page_store *store, uint64_t bytes, const char *name,
                   const char *path, uid_t user, bool resumed, struct problem *problem);

void exporter_sweep(struct exporter *exporter);

/* Change the size. False: pages behind its new end are in use, or a command takes too long. */
bool exporter_resize(struct exporter *exporter, uint64_t bytes);

/* Hang up on all, and wait for the thread. */
void exporter_end(struct exporter *exporter);

#endif
