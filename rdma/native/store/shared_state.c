#define _GNU_SOURCE
#include "shared_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 4096, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
static const char MAGIC[8] = {'p', 'o', 'n', 'd', 'p', 'g', 's', '1'};
_Static_assert(sizeof(struct state_header) <= HEADER_BYTES, "the header has a page of its own");
_Static_assert(sizeof(struct page_row) == 32, "rows are as every release wrote them");

/* With `spare` bytes behind the rows: those begin on a page's boundary. */
static uint64_t spare_at(uint64_t pages)
{
    return (HEADER_BYTES + pages * sizeof(struct page_row) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static uint64_t bytes_of(uint64_t pages, uint64_t spare)
{
    return spare == 0 ? HEADER_BYTES + pages * sizeof(struct page_row) : spare_at(pages) + spare;
}

/* See that nobody makes the memfd shorter: the guest's process holds it, and an access behind its end would kill this
 * process, which serves other guests too. */
static bool keep_size(int fd, uint64_t bytes)
{
    struct stat found;
    return fcntl(fd, F_ADD_SEALS, SEALS) == 0 && fstat(fd, &found) == 0 && (uint64_t)found.st_size == bytes;
}

static bool size_is_kept(int fd, uint64_t bytes)
{
    struct stat found;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &found) == 0 && (uint64_t)found.st_size == bytes;
}

/* Have a memfd, a new one or that of an earlier attachment, hold zeros. */
static bool clear(int fd, uint64_t bytes)
{
    if (size_is_kept(fd, bytes)) {
        return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0;
    }
    return ftruncate(fd, 0) == 0 && ftruncate(fd, (off_t)bytes) == 0 && keep_size(fd, bytes);
}

static int map(struct shared_state *state, int fd, uint64_t pages, uint64_t spare, struct problem *problem)
{
    uint64_t bytes = bytes_of(pages, spare);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return problem_set(problem, "the table of %" PRIu64 " pages cannot be mapped: %s", pages, strerror(errno));
    }
    *state = (struct shared_state){
        .header = at,
        .rows = (struct page_row *)((char *)at + HEADER_BYTES),
        .spare = spare == 0 ? NULL : (char *)at + spare_at(pages),
        .bytes = bytes,
    };
    /* The key stays out of swap while this process lives, and table and key out of its core dumps. Best effort: without
     * the privilege to lock a page, everything else works. */
    (void)mlock(at, HEADER_BYTES);
    (void)madvise(at, bytes, MADV_DONTDUMP);
    return 0;
}

int state_create(struct shared_state *state, int fd, uint64_t pages, uint64_t spare, const char *guest, bool sealed,
                 struct problem *problem)
{
    *state = (struct shared_state){0};
    if (!clear(fd, bytes_of(pages, spare))) {
        return problem_set(problem, "no table of %" PRIu64 " pages: %s", pages, strerror(errno));
    }
    if (map(state, fd, pages, spare, problem) != 0) {
        return -1;
    }
    struct state_header *header = state->header;
    if (getrandom(header->key, sizeof header->key, 0) != sizeof header->key) {
        state_close(state);
        return problem_set(problem, "the kernel gives no random key: %s", strerror(errno));
    }
    header->pages = pages;
    header->sealed = sealed;
    snprintf(header->guest, sizeof header->guest, "%s", guest);
    atomic_store(&header->userfault_fd, -1);
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, MAGIC, sizeof MAGIC); /* last: without it, this is an empty memfd */
    return 0;
}

int state_open(struct shared_state *state, int fd, uint64_t pages, uint64_t spare, const char *guest,
               struct problem *problem)
{
    *state = (struct shared_state){0};
    if (!size_is_kept(fd, bytes_of(pages, spare))) {
        return problem_set(problem, "the guest's process holds no sealed table of %" PRIu64 " pages", pages);
    }
    if (map(state, fd, pages, spare, problem) != 0) {
        return -1;
    }
    struct state_header *header = state->header;
    if (memcmp(header->magic, MAGIC, sizeof MAGIC) != 0 || header->pages != pages ||
        strncmp(header->guest, guest, sizeof header->guest) != 0) {
        state_close(state);
        return problem_set(problem, "the table that the guest's process holds is not that of guest %s", guest);
    }
    return 0;
}

void state_close(struct shared_state *state)
{
    if (state->header != NULL) {
        munmap(state->header, state->bytes);
        *state = (struct shared_state){0};
    }
}

void state_forget_key(struct shared_state *state)
{
    OPENSSL_cleanse(state->header->key, KEY_BYTES);
}
