/* A tier in a lender's memory on the same machine: a mapped region, and the word that says whether its key lives.
 *
 * The counterpart of pondstack_rdma/shm: an access is a copy between two looks at the word, and nothing of the lender's
 * process has a part in it, so that a frozen lender serves. The socket of a lender that was killed closes.
 */
#ifndef PONDSTACK_STORE_SHM_TIER_H
#define PONDSTACK_STORE_SHM_TIER_H

#include "../store/tier.h"

#include <stdatomic.h>

struct shm_tier {
    struct tier tier;
    int socket; /* the lender's; stays the caller's, as the page with the word does */
    uint64_t polled_ns;
    char *window;
    uint64_t slots;
    const _Atomic uint64_t *word;
    uint64_t key_number;
};

/* Make a tier of a window, which is unmapped by `close`. */
void shm_tier_begin(struct shm_tier *made, int socket, void *window, uint64_t slots, const _Atomic uint64_t *word,
                    uint64_t key_number);

#endif
