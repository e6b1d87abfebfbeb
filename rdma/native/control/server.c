#define _GNU_SOURCE
#include "server.h"

#include "verbs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { CLIENTS = 16, LINE_BYTES = 65536, LOOK_MS = 500, BACKLOG = 16 };

struct connection {
    int fd; /* -1: free */
    size_t got;
    char line[LINE_BYTES];
};

static bool send_all(int fd, const char *text, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = send(fd, text + done, size - done, MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR) {
            return false; /* gone, or it takes no answers */
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool answer_lines(struct guests *guests, struct connection *client)
{
    char *end;
    while ((end = memchr(client->line, '\n', client->got)) != NULL) {
        size_t size = (size_t)(end - client->line) + 1;
        char *text = verbs_answer(guests, client->line, size - 1);
        bool good = text != NULL && send_all(client->fd, text, strlen(text)) && send_all(client->fd, "\n", 1);
        free(text);
        if (!good) {
            return false;
        }
        client->got -= size;
        memmove(client->line, client->line + size, client->got);
    }
    return client->got < LINE_BYTES; /* else a line that is too long */
}

static void serve(struct guests *guests, struct connection *client)
{
    ssize_t got = recv(client->fd, client->line + client->got, LINE_BYTES - client->got, MSG_DONTWAIT);
    bool good = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    client->got += got > 0 ? (size_t)got : 0;
    if (!good || !answer_lines(guests, client)) {
        close(client->fd);
        client->fd = -1;
        client->got = 0;
    }
}

static bool trusted(int fd, const struct client *client)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid() || (client->mirrors != NULL && peer.uid == client->user));
}

static void welcome(struct connection *clients, int listener, const struct client *served)
{
    struct timeval most = {.tv_sec = 1};
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    for (int at = 0; fd >= 0 && trusted(fd, served) && at < CLIENTS; at++) {
        if (clients[at].fd < 0) {
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
            clients[at].fd = fd;
            return;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

void server_run(struct guests *guests, int listener, int stop_fd)
{
    struct connection *clients = calloc(CLIENTS, sizeof *clients);
    struct pollfd fds[CLIENTS + 2];
    for (int at = 0; clients != NULL && at < CLIENTS; at++) {
        clients[at].fd = -1;
    }
    for (bool stop = clients == NULL; !stop;) {
        for (int at = 0; at < CLIENTS; at++) {
            fds[at] = (struct pollfd){.fd = clients[at].fd, .events = POLLIN};
        }
        fds[CLIENTS] = (struct pollfd){.fd = listener, .events = POLLIN};
        fds[CLIENTS + 1] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
        poll(fds, CLIENTS + 2, LOOK_MS);
        for (int at = 0; at < CLIENTS; at++) {
            if (fds[at].fd >= 0 && fds[at].revents != 0) {
                serve(guests, &clients[at]);
            }
        }
        if (fds[CLIENTS].revents != 0) {
            welcome(clients, listener, &guests->client);
        }
        stop = fds[CLIENTS + 1].revents != 0;
        guests_look(guests);
    }
    free(clients);
}

static int address(struct sockaddr_un *made, const char *folder, struct problem *problem)
{
    *made = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t size = (size_t)snprintf(made->sun_path, sizeof made->sun_path, "%s/control.sock", folder);
    return size < sizeof made->sun_path ? 0 : problem_set(problem, "the path of the folder %s is too long", folder);
}

int server_listen(const char *folder, const struct client *client, struct problem *problem)
{
    struct sockaddr_un at;
    if (address(&at, folder, problem) != 0) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(at.sun_path); /* of a process that was killed: this one holds the folder's lock */
    mode_t mask = umask(0177);
    bool good = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, BACKLOG) == 0;
    umask(mask);
    good = good && (client->mirrors == NULL || chown(at.sun_path, client->user, (gid_t)-1) == 0);
    if (!good) {
        problem_set(problem, "%s cannot be listened on: %s", at.sun_path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

/* Print what comes, up to the end of the line; whether it is a result. */
static bool print_answer(int fd)
{
    bool good = false, first = true;
    char text[4096];
    for (ssize_t got; (got = recv(fd, text, sizeof text, 0)) > 0;) {
        good = first ? strncmp(text, "{\"result\"", 9) == 0 : good;
        first = false;
        fwrite(text, 1, (size_t)got, stdout);
        if (text[got - 1] == '\n') {
            return good;
        }
    }
    return false;
}

int server_ask(const char *folder, const char *request, struct problem *problem)
{
    struct sockaddr_un at;
    if (address(&at, folder, problem) != 0) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        problem_set(problem, "no data plane listens on %s: %s", at.sun_path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    bool good = send_all(fd, request, strlen(request)) && send_all(fd, "\n", 1) && print_answer(fd);
    close(fd);
    return good ? 0 : problem_set(problem, "the data plane did not do it");
}
