#define _GNU_SOURCE
#include "exporter.h"

#include "../pager/counters.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 8, LOOK_MS = 1000, RESIZE_SECONDS = 2 };
static const uint64_t NEGOTIATION_NS = 10000000000; /* whoever is silent for so long before it begins is hung up on */

static void hang_up(struct exporter *exporter, struct nbd_client *client)
{
    COUNT(exporter->device.counters, hang_ups, client->connection->misbehaved);
    close(client->fd);
    free(client->connection);
    *client = (struct nbd_client){.fd = -1};
    atomic_fetch_sub(&exporter->connected, 1);
}

static bool may_open(const struct exporter *exporter, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid() || peer.uid == exporter->user);
}

static void welcome(struct exporter *exporter)
{
    int fd = accept4(exporter->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (int at = 0; fd >= 0 && may_open(exporter, fd) && at < MOST_CONNECTIONS; at++) {
        struct nbd_client *client = &exporter->clients[at];
        if (client->fd < 0) {
            client->connection = malloc(sizeof *client->connection);
            if (client->connection == NULL) {
                break;
            }
            client->fd = fd;
            client->since_ns = clock_ns();
            connection_begin(client->connection, &exporter->device, exporter->name);
            atomic_fetch_add(&exporter->connected, 1);
            return;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Send what there is to say. False: it has gone. */
static bool talk(struct nbd_client *client)
{
    struct nbd_connection *connection = client->connection;
    while (connection->put > 0) {
        ssize_t put = send(client->fd, connection->out, connection->put, MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR) {
            return errno == EAGAIN;
        }
        connection_sent(connection, put > 0 ? (uint32_t)put : 0);
    }
    return true;
}

/* Take what it says. False: it has gone. */
static bool listen_to(struct nbd_client *client)
{
    struct nbd_connection *connection = client->connection;
    uint32_t room = CONNECTION_IN - connection->got;
    ssize_t got = room == 0 ? -1 : recv(client->fd, connection->in + connection->got, room, 0);
    connection->got += got > 0 ? (uint32_t)got : 0;
    return got > 0 || room == 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* One turn of a connection. */
static void serve(struct exporter *exporter, struct nbd_client *client, short events)
{
    struct nbd_connection *connection = client->connection;
    bool there = connection->phase == FINISHED || (events & ~POLLOUT) == 0 || listen_to(client);
    uint32_t left;
    do { /* until it has to say more, or to take more */
        left = connection->got;
        pthread_mutex_lock(&exporter->busy);
        connection_step(connection);
        pthread_mutex_unlock(&exporter->busy);
        there = there && talk(client);
    } while (there && connection->put == 0 && connection->got != left && connection->got > 0);
    bool silent = connection->phase < COMMANDS && clock_ns() - client->since_ns > NEGOTIATION_NS;
    connection->misbehaved = connection->misbehaved || silent;
    if (!there || silent || (connection->phase == FINISHED && connection->put == 0)) {
        hang_up(exporter, client);
    }
}

/* What to wait for. Whoever does not read its answers is not heard. */
static short events_of(const struct nbd_connection *connection)
{
    return connection->put > 0 ? POLLOUT : POLLIN;
}

static void look(struct exporter *exporter)
{
    struct pollfd fds[MOST_CONNECTIONS + 2];
    int timeout_ms = -1;
    for (int at = 0; at < MOST_CONNECTIONS; at++) {
        const struct nbd_client *client = &exporter->clients[at];
        fds[at] = (struct pollfd){.fd = client->fd};
        if (client->fd >= 0) {
            fds[at].events = events_of(client->connection);
            timeout_ms = client->connection->phase < COMMANDS ? LOOK_MS : timeout_ms;
        }
    }
    fds[MOST_CONNECTIONS] = (struct pollfd){.fd = exporter->listener, .events = POLLIN};
    fds[MOST_CONNECTIONS + 1] = (struct pollfd){.fd = exporter->wake_fd, .events = POLLIN};
    poll(fds, MOST_CONNECTIONS + 2, timeout_ms);
    for (int at = 0; at < MOST_CONNECTIONS; at++) {
        if (fds[at].fd >= 0 && (fds[at].revents != 0 || timeout_ms > 0)) {
            serve(exporter, &exporter->clients[at], fds[at].revents);
        }
    }
    if (fds[MOST_CONNECTIONS].revents != 0) {
        welcome(exporter);
    }
    uint64_t told;
    if (fds[MOST_CONNECTIONS + 1].revents != 0) {
        (void)!read(exporter->wake_fd, &told, sizeof told);
    }
}

static void *run(void *argument)
{
    struct exporter *exporter = argument;
    if (exporter->resumed) {
        device_tidy(&exporter->device);
    }
    while (!atomic_load(&exporter->stop)) {
        if (atomic_exchange(&exporter->sweep, false)) {
            leases_sweep(&exporter->device.store->leases);
        }
        look(exporter);
    }
    for (int at = 0; at < MOST_CONNECTIONS; at++) {
        if (exporter->clients[at].fd >= 0) {
            hang_up(exporter, &exporter->clients[at]);
        }
    }
    return NULL;
}

/* Remove the socket that a killed process left; anything else is somebody's. */
static int clear(const char *path, struct problem *problem)
{
    struct stat found;
    if (lstat(path, &found) == 0 && (!S_ISSOCK(found.st_mode) || unlink(path) != 0)) {
        return problem_set(problem, "socket: %s is there already, and is no socket", path);
    }
    return 0;
}

static int listen_at(const char *path, uid_t user, struct problem *problem)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path) {
        return problem_set(problem, "socket: the path %s is too long", path);
    }
    strcpy(at.sun_path, path);
    if (clear(path, problem) != 0) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(0177);
    bool good = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    umask(mask);
    good = good && (user == geteuid() || lchown(path, user, (gid_t)-1) == 0) && listen(fd, BACKLOG) == 0;
    if (!good) {
        problem_set(problem, "socket: %s cannot be listened on for user %u: %s", path, user, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
    }
    return good ? fd : -1;
}

static void release(struct exporter *exporter)
{
    if (exporter->listener >= 0) {
        close(exporter->listener);
    }
    if (exporter->wake_fd >= 0) {
        close(exporter->wake_fd);
    }
    pthread_mutex_destroy(&exporter->busy);
}

int exporter_begin(struct exporter *exporter, struct page_store *store, uint64_t bytes, const char *name,
                   const char *path, uid_t user, bool resumed, struct problem *problem)
{
    memset(exporter, 0, sizeof *exporter);
    exporter->device.store = store;
    atomic_store(&exporter->device.bytes, bytes);
    exporter->name = name;
    exporter->user = user;
    exporter->resumed = resumed;
    pthread_mutex_init(&exporter->busy, NULL);
    for (int at = 0; at < MOST_CONNECTIONS; at++) {
        exporter->clients[at].fd = -1;
    }
    exporter->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    exporter->listener = listen_at(path, user, problem);
    int error =
        exporter->listener < 0 || exporter->wake_fd < 0 ? -1 : pthread_create(&exporter->thread, NULL, run, exporter);
    if (error > 0) {
        problem_set(problem, "no thread: %s", strerror(error));
    }
    if (error != 0) {
        release(exporter);
    }
    return error == 0 ? 0 : -1;
}

static void tell(struct exporter *exporter)
{
    uint64_t one = 1;
    (void)!write(exporter->wake_fd, &one, sizeof one);
}

void exporter_sweep(struct exporter *exporter)
{
    atomic_store(&exporter->sweep, true);
    tell(exporter);
}

bool exporter_resize(struct exporter *exporter, uint64_t bytes)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RESIZE_SECONDS;
    if (pthread_mutex_timedlock(&exporter->busy, &until) != 0) {
        return false;
    }
    bool good = !device_uses(&exporter->device, bytes);
    if (good) {
        atomic_store(&exporter->device.bytes, bytes);
    }
    pthread_mutex_unlock(&exporter->busy);
    return good;
}

void exporter_end(struct exporter *exporter)
{
    atomic_store(&exporter->stop, true);
    tell(exporter);
    pthread_join(exporter->thread, NULL);
    release(exporter);
}
