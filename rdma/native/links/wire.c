#define _GNU_SOURCE
#include "wire.h"

#include "address.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

static const uint64_t NS_PER_MS = 1000000;

uint64_t wire_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t wire_deadline(uint32_t milliseconds)
{
    return wire_now_ns() + milliseconds * NS_PER_MS;
}

/* Wait until the socket is ready for something. */
static int await(int fd, short events, uint64_t ends_ns)
{
    for (;;) {
        uint64_t now = wire_now_ns();
        if (now >= ends_ns) {
            return ETIMEDOUT;
        }
        struct pollfd one = {.fd = fd, .events = events};
        int ready = poll(&one, 1, (int)((ends_ns - now) / NS_PER_MS) + 1);
        if (ready > 0) {
            return 0;
        }
        if (ready < 0 && errno != EINTR) {
            return errno;
        }
    }
}

int wire_socket(const char *host)
{
    struct sockaddr_storage address;
    int error = address_of(host, 0, &address), one = 1;
    if (error != 0) {
        errno = error;
        return -1;
    }
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return fd;
}

int wire_connect(int fd, const char *host, int port, uint64_t ends_ns)
{
    struct sockaddr_storage address;
    int error = address_of(host, port, &address);
    if (error != 0) {
        return error;
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        return 0;
    }
    error = errno == EINPROGRESS ? await(fd, POLLOUT, ends_ns) : errno;
    socklen_t size = sizeof error;
    if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        return errno;
    }
    return error;
}

int wire_send(int fd, const void *from, size_t bytes, uint64_t ends_ns)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = send(fd, (const char *)from + done, bytes - done, MSG_NOSIGNAL);
        int error = put >= 0 ? 0 : errno == EAGAIN ? await(fd, POLLOUT, ends_ns) : errno;
        if (error != 0 && error != EINTR) {
            return error;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

int wire_receive(int fd, void *into, size_t bytes, uint64_t ends_ns)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = recv(fd, (char *)into + done, bytes - done, 0);
        if (got == 0) {
            return ECONNRESET;
        }
        int error = got > 0 ? 0 : errno == EAGAIN ? await(fd, POLLIN, ends_ns) : errno;
        if (error != 0 && error != EINTR) {
            return error;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}
