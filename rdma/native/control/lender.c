#define _GNU_SOURCE
#include "lender.h"

#include "../store/sealer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 4096, CONTROL_BYTES = 65536, CONTROL_WORDS = CONTROL_BYTES / 8, ANSWER_SECONDS = 2 };

/* Receive one message and the descriptor beside it, -1 when there is none. */
static json_t *receive(int socket, int *fd)
{
    char text[MESSAGE_BYTES], beside[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = {text, sizeof text};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = beside, .msg_controllen = sizeof beside};
    *fd = -1;
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    for (struct cmsghdr *each = got < 0 ? NULL : CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SCM_RIGHTS) {
            int found[2];
            size_t size = each->cmsg_len - CMSG_LEN(0);
            memcpy(found, CMSG_DATA(each), size);
            *fd = found[0];
            if (size > sizeof(int)) {
                close(found[1]); /* nobody asked for it */
            }
        }
    }
    bool whole = got > 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    json_t *object = whole ? json_loadb(text, (size_t)got, 0, NULL) : NULL;
    if (object == NULL && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return object;
}

/* Ask for a descriptor. Answers of questions that were given up are passed over. */
static json_t *ask(struct lender *lender, json_t *question, json_t *id, int *fd, struct problem *problem)
{
    char *text = json_dumps(question, JSON_COMPACT);
    bool sent = text != NULL && send(lender->socket, text, strlen(text), MSG_NOSIGNAL) >= 0;
    int error = errno;
    json_t *answer = NULL;
    free(text);
    *fd = -1;
    while (sent && (answer = receive(lender->socket, fd)) != NULL && id != NULL &&
           !json_equal(json_object_get(answer, "id"), id)) {
        json_decref(answer);
        if (*fd >= 0) {
            close(*fd);
        }
    }
    if (answer == NULL) {
        problem_set(problem, "lender %s does not answer: %s", lender->name, strerror(sent ? errno : error));
    } else if (*fd < 0) {
        const char *reason = "";
        (void)json_unpack(answer, "{s:{s:s}}", "error", "text", &reason);
        problem_set(problem, "lender %s refuses: %s", lender->name, reason);
        json_decref(answer);
        answer = NULL;
    }
    return answer;
}

static int dial(const char *path, const char *name, struct problem *problem)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval most = {.tv_sec = ANSWER_SECONDS};
    int fd = -1;
    if ((size_t)snprintf(at.sun_path, sizeof at.sun_path, "%s", path) < sizeof at.sun_path) {
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    }
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    }
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        problem_set(problem, "lender %s cannot be reached at %s: %s", name, path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

struct lender *lender_connect(const char *name, json_t *ticket, struct problem *problem)
{
    const char *driver, *address;
    json_error_t error;
    if (json_unpack_ex(ticket, &error, 0, "{s:s, s:s}", "driver", &driver, "address", &address) != 0) {
        problem_set(problem, "ticket: %s", error.text);
        return NULL;
    }
    struct lender *lender = strcmp(driver, "shm") == 0 ? calloc(1, sizeof *lender) : NULL;
    if (lender == NULL) {
        problem_set(problem, "ticket: lenders of the driver %.20s are not supported; only shm is", driver);
        return NULL;
    }
    int fd;
    snprintf(lender->name, sizeof lender->name, "%s", name);
    lender->socket = dial(address, name, problem);
    lender->words = MAP_FAILED;
    json_t *answer = lender->socket < 0 ? NULL : ask(lender, ticket, NULL, &fd, problem);
    if (answer != NULL) {
        lender->words = mmap(NULL, CONTROL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        json_decref(answer);
        if (lender->words == MAP_FAILED) {
            problem_set(problem, "the keys of lender %s cannot be mapped: %s", name, strerror(errno));
        }
    }
    if (lender->words == MAP_FAILED) {
        lender_end(lender);
        return NULL;
    }
    return lender;
}

/* Map the region of a key, and make a lease of it. */
static int use(struct lender *lender, struct window *window, int fd, uint64_t number, uint64_t bytes, json_int_t slot,
               struct leases *leases)
{
    struct stat found;
    uint64_t slots = bytes / PAGE_BYTES;
    if (slot < 0 || slot >= CONTROL_WORDS || slots == 0 || slots > MOST_LEASE_SLOTS || fstat(fd, &found) != 0 ||
        (uint64_t)found.st_size < slots * PAGE_BYTES) {
        return -1;
    }
    void *at = mmap(NULL, slots * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return -1;
    }
    (void)madvise(at, slots * PAGE_BYTES, MADV_DONTDUMP);
    shm_tier_begin(&window->tier, lender->socket, at, slots, (const _Atomic uint64_t *)lender->words + slot, number);
    window->lease = lease_make(&window->tier.tier, (uint32_t)slots);
    if (window->lease == NULL || !leases_add(leases, window->lease)) {
        free(window->lease);
        window->tier.tier.type->close(&window->tier.tier);
        return -1;
    }
    window->next = lender->windows;
    lender->windows = window;
    return 0;
}

static struct window *find(const struct lender *lender, uint64_t number)
{
    struct window *window = lender->windows;
    while (window != NULL && window->tier.key_number != number) {
        window = window->next;
    }
    return window;
}

int lender_lease(struct lender *lender, json_t *key, struct leases *leases, struct problem *problem)
{
    json_int_t number, bytes, slot = -1;
    json_error_t error;
    if (json_unpack_ex(key, &error, 0, "{s:I, s:I}", "number", &number, "size_bytes", &bytes) != 0) {
        return problem_set(problem, "key: %s", error.text);
    }
    if (find(lender, (uint64_t)number) != NULL) {
        return 0; /* told once more */
    }
    int fd;
    json_t *question = json_pack("{s:i, s:O}", "id", ++lender->asked, "key", key);
    json_t *answer = ask(lender, question, json_object_get(question, "id"), &fd, problem);
    json_decref(question);
    if (answer == NULL) {
        return -1;
    }
    (void)json_unpack(answer, "{s:I}", "slot", &slot);
    json_decref(answer);
    struct window *window = calloc(1, sizeof *window);
    int result = window == NULL ? -1 : use(lender, window, fd, (uint64_t)number, (uint64_t)bytes, slot, leases);
    close(fd);
    if (result != 0) {
        free(window);
        return problem_set(problem, "key %lld of lender %s opens nothing that can be used", (long long)number,
                           lender->name);
    }
    return 0;
}

bool lender_leave(struct lender *lender, uint64_t number)
{
    struct window *window = find(lender, number);
    if (window != NULL && atomic_load(&window->lease->state) != LEASE_LEFT) {
        atomic_store(&window->lease->state, LEASE_LEAVING);
    }
    return window != NULL;
}

void lender_release(struct lender *lender, struct leases *leases, bool all)
{
    for (struct window **at = &lender->windows; *at != NULL;) {
        struct window *window = *at;
        if (!all && atomic_load(&window->lease->state) != LEASE_LEFT) {
            at = &window->next;
            continue;
        }
        *at = window->next;
        leases_remove(leases, window->lease);
        window->tier.tier.type->close(&window->tier.tier);
        free(window);
    }
}

void lender_end(struct lender *lender)
{
    if (lender->words != MAP_FAILED) {
        munmap(lender->words, CONTROL_BYTES);
    }
    if (lender->socket >= 0) {
        close(lender->socket);
    }
    free(lender);
}
