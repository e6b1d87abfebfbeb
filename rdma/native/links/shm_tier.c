#define _GNU_SOURCE
#include "shm_tier.h"

#include "../store/sealer.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const uint64_t POLL_NS = 1000000; /* the lender's socket is looked at once a millisecond, as in shm_access.c */

static bool alive(struct shm_tier *shm)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (now_ns - shm->polled_ns >= POLL_NS) {
        struct pollfd fd = {.fd = shm->socket, .events = POLLRDHUP};
        if (poll(&fd, 1, 0) != 0) {
            return false;
        }
        shm->polled_ns = now_ns;
    }
    return true;
}

static bool lives(const struct shm_tier *shm, memory_order order)
{
    return atomic_load_explicit(shm->word, order) == shm->key_number;
}

/* Copy between two looks at the word: what was read after the end of the key is nobody's. */
static int carry_out(struct shm_tier *shm, uint64_t slot, uint32_t count, void *into, const void *from)
{
    if (slot >= shm->slots || count > shm->slots - slot) {
        return EINVAL;
    }
    if (!alive(shm)) {
        return ECONNRESET;
    }
    if (!lives(shm, memory_order_acquire)) {
        return EACCES;
    }
    size_t bytes = (size_t)count * PAGE_BYTES;
    if (into != NULL) {
        memcpy(into, shm->window + slot * PAGE_BYTES, bytes);
    } else {
        memcpy(shm->window + slot * PAGE_BYTES, from, bytes);
    }
    atomic_thread_fence(memory_order_seq_cst);
    return lives(shm, memory_order_relaxed) ? 0 : EACCES;
}

static int shm_read(struct tier *tier, uint64_t slot, uint32_t count, void *into)
{
    return carry_out((struct shm_tier *)tier, slot, count, into, NULL);
}

static int shm_write(struct tier *tier, uint64_t slot, uint32_t count, const void *from)
{
    return carry_out((struct shm_tier *)tier, slot, count, NULL, from);
}

static int shm_discard(struct tier *tier, uint64_t slot, uint32_t count)
{
    (void)tier;
    (void)slot;
    (void)count;
    return 0; /* the region is all there, and its lender's; what is in it is sealed */
}

static void shm_close(struct tier *tier)
{
    struct shm_tier *shm = (struct shm_tier *)tier;
    if (shm->window != NULL) {
        munmap(shm->window, shm->slots * PAGE_BYTES);
        shm->window = NULL;
    }
}

static const struct tier_type shm_type = {
    .name = "shm", .read = shm_read, .write = shm_write, .discard = shm_discard, .close = shm_close};

void shm_tier_begin(struct shm_tier *made, int socket, void *window, uint64_t slots, const _Atomic uint64_t *word,
                    uint64_t key_number)
{
    *made = (struct shm_tier){.tier = {&shm_type},
                              .socket = socket,
                              .window = window,
                              .slots = slots,
                              .word = word,
                              .key_number = key_number};
}
