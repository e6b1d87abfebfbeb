#define _GNU_SOURCE
#include "door.h"

#include "../links/address.h"
#include "../links/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4 };

static void put_away(struct peer *peer)
{
    if (peer != NULL) {
        peer_end(peer);
        free(peer);
    }
}

static void let_in(struct door *door)
{
    int one = 1, fd = accept4(door->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct peer *peer = fd < 0 ? NULL : malloc(sizeof *peer);
    if (peer == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (peer_begin(peer, fd, door->key, door->guest, false, wire_deadline(GREETING_MS)) != 0) {
        free(peer);
        return;
    }
    put_away(atomic_exchange(&door->came, peer));
    door->tell(door->whom);
}

static void *watch(void *context)
{
    struct door *door = context;
    struct pollfd fds[] = {{.fd = door->listener, .events = POLLIN}, {.fd = door->stop_fd, .events = POLLIN}};
    while (fds[1].revents == 0) {
        poll(fds, 2, -1);
        if (fds[0].revents != 0 && fds[1].revents == 0) {
            let_in(door);
        }
    }
    return NULL;
}

static int listen_on(const char *host, int port)
{
    struct sockaddr_storage address;
    int one = 1, error = address_of(host, port, &address);
    if (error != 0) {
        errno = error;
        return -1;
    }
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
                    bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0)) {
        error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int door_open(struct door *door, const char *host, int port, struct problem *problem)
{
    door->stop_fd = -1;
    door->listener = listen_on(host, port);
    if (door->listener < 0) {
        return problem_set(problem, "%s, port %d cannot be listened on: %s", host, port, strerror(errno));
    }
    atomic_store(&door->came, NULL);
    door->stop_fd = eventfd(0, EFD_CLOEXEC);
    int error = door->stop_fd < 0 ? errno : pthread_create(&door->thread, NULL, watch, door);
    if (error != 0) {
        close(door->listener);
        if (door->stop_fd >= 0) {
            close(door->stop_fd);
        }
        door->listener = door->stop_fd = -1;
        return problem_set(problem, "no thread for a hand-over: %s", strerror(error));
    }
    return 0;
}

int door_port(const struct door *door)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    if (door->listener < 0 || getsockname(door->listener, (struct sockaddr *)&at, &size) != 0) {
        return 0;
    }
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                          : ((struct sockaddr_in *)&at)->sin_port);
}

struct peer *door_take(struct door *door)
{
    return atomic_exchange(&door->came, NULL);
}

void door_close(struct door *door)
{
    uint64_t one = 1;
    if (door->listener < 0) {
        return;
    }
    (void)!write(door->stop_fd, &one, sizeof one);
    pthread_join(door->thread, NULL);
    close(door->listener);
    close(door->stop_fd);
    door->listener = door->stop_fd = -1;
    put_away(atomic_exchange(&door->came, NULL));
    OPENSSL_cleanse(door->key, sizeof door->key);
}
