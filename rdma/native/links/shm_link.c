/* A lender on this machine, as pondstack_rdma/shm lends: a socket, and memory that it passes over. */
#define _GNU_SOURCE
#include "../store/sealer.h"
#include "link.h"
#include "shm_tier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 4096, CONTROL_BYTES = 65536, CONTROL_WORDS = CONTROL_BYTES / 8, MS_PER_SECOND = 1000 };

struct shm {
    struct link link;
    int socket;
    pid_t lender; /* its process */
    int asked;   /* the number of the last question */
    void *words; /* which keys live */
};

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
static json_t *ask(struct shm *shm, json_t *question, json_t *id, int *fd, struct problem *problem)
{
    char *text = json_dumps(question, JSON_COMPACT);
    bool sent = text != NULL && send(shm->socket, text, strlen(text), MSG_NOSIGNAL) >= 0;
    int error = errno;
    json_t *answer = NULL;
    free(text);
    *fd = -1;
    while (sent && (answer = receive(shm->socket, fd)) != NULL && id != NULL &&
           !json_equal(json_object_get(answer, "id"), id)) {
        json_decref(answer);
        if (*fd >= 0) {
            close(*fd);
        }
    }
    if (answer == NULL) {
        problem_set(problem, "lender %s does not answer: %s", shm->link.name, strerror(sent ? errno : error));
    } else if (*fd < 0) {
        const char *reason = "";
        (void)json_unpack(answer, "{s:{s:s}}", "error", "text", &reason);
        problem_set(problem, "lender %s refuses: %s", shm->link.name, reason);
        json_decref(answer);
        answer = NULL;
    }
    return answer;
}

static int dial(const char *path, const struct link *link, struct problem *problem)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval most = {.tv_sec = link->answer_ms / MS_PER_SECOND,
                           .tv_usec = link->answer_ms % MS_PER_SECOND * MS_PER_SECOND};
    int fd = -1;
    if ((size_t)snprintf(at.sun_path, sizeof at.sun_path, "%s", path) < sizeof at.sun_path) {
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    }
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    }
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        problem_set(problem, "lender %s cannot be reached at %s: %s", link->name, path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

static pid_t process_behind(int socket)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

static int shm_connect(struct link *link, const struct ticket *ticket, struct problem *problem)
{
    struct shm *shm = (struct shm *)link;
    int fd;
    shm->socket = dial(ticket->address, link, problem);
    shm->words = MAP_FAILED;
    json_t *answer = shm->socket < 0 ? NULL : ask(shm, ticket->json, NULL, &fd, problem);
    if (answer == NULL) {
        return -1;
    }
    shm->words = mmap(NULL, CONTROL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    json_decref(answer);
    shm->lender = process_behind(shm->socket);
    return shm->words != MAP_FAILED
               ? 0
               : problem_set(problem, "the keys of lender %s cannot be mapped: %s", link->name, strerror(errno));
}

/* Map the region of a key, and make a tier of it; NULL: it cannot be used. */
static struct tier *use(struct shm *shm, int fd, const struct key *key, json_int_t slot)
{
    struct stat found;
    size_t bytes = key->slots * PAGE_BYTES;
    if (slot < 0 || slot >= CONTROL_WORDS || fstat(fd, &found) != 0 || (uint64_t)found.st_size < bytes) {
        return NULL;
    }
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return NULL;
    }
    struct shm_tier *made = malloc(sizeof *made);
    if (made == NULL) {
        munmap(at, bytes);
        return NULL;
    }
    (void)madvise(at, bytes, MADV_DONTDUMP);
    shm_tier_begin(made, shm->socket, at, key->slots, (const _Atomic uint64_t *)shm->words + slot, key->number);
    return &made->tier;
}

/* Whether a descriptor is of a region that a lender lends: as pondstack_rdma/shm/memory.py names it. */
static bool is_lent(int fd)
{
    static const char LENT[] = "/memfd:pondstack-lent";
    char path[64], found[sizeof LENT];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, found, sizeof found) >= (ssize_t)sizeof LENT - 1 && memcmp(found, LENT, sizeof LENT - 1) == 0;
}

/* Open what a lender has open, and is not asked for: it may be frozen. The number is reused when the key has ended, which
 * its word tells afterwards. */
static int open_lent(const struct shm *shm, const struct key *key, json_int_t *slot)
{
    json_int_t number;
    char path[64];
    if (shm->lender <= 0 || json_unpack(key->location, "{s:I, s:I}", "fd", &number, "slot", slot) != 0) {
        return -1;
    }
    snprintf(path, sizeof path, "/proc/%d/fd/%lld", (int)shm->lender, (long long)number);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool lives = fd >= 0 && *slot >= 0 && *slot < CONTROL_WORDS && is_lent(fd) &&
                 atomic_load((const _Atomic uint64_t *)shm->words + *slot) == key->number;
    if (fd >= 0 && !lives) {
        close(fd);
    }
    return lives ? fd : -1;
}

/* Have the lender pass it over. */
static int ask_for(struct shm *shm, const struct key *key, json_int_t *slot, struct problem *problem)
{
    int fd;
    json_t *question = json_pack("{s:i, s:O}", "id", ++shm->asked, "key", key->json);
    json_t *answer = ask(shm, question, json_object_get(question, "id"), &fd, problem);
    json_decref(question);
    if (answer == NULL) {
        return -1;
    }
    (void)json_unpack(answer, "{s:I}", "slot", slot);
    json_decref(answer);
    return fd;
}

static struct tier *shm_open_key(struct link *link, const struct key *key, struct problem *problem)
{
    struct shm *shm = (struct shm *)link;
    json_int_t slot = -1;
    int fd = key->location != NULL ? open_lent(shm, key, &slot) : ask_for(shm, key, &slot, problem);
    if (fd < 0 && key->location == NULL) {
        return NULL;
    }
    struct tier *made = fd < 0 ? NULL : use(shm, fd, key, slot);
    if (fd >= 0) {
        close(fd);
    }
    if (made == NULL) {
        problem_set(problem, "key %llu of lender %s opens nothing that can be used", (unsigned long long)key->number,
                    link->name);
    }
    return made;
}

static bool shm_lives(struct link *link)
{
    return !link_hung_up(((struct shm *)link)->socket);
}

static void shm_end(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    if (shm->words != MAP_FAILED) {
        munmap(shm->words, CONTROL_BYTES);
    }
    if (shm->socket >= 0) {
        close(shm->socket);
    }
}

const struct link_type shm_link = {
    .driver = "shm", .bytes = sizeof(struct shm), .connect = shm_connect, .open = shm_open_key, .lives = shm_lives,
    .end = shm_end};
