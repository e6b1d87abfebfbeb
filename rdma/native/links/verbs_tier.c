#include "verbs_tier.h"

#include "../store/sealer.h"

#include <errno.h>
#include <stddef.h>

static int error_of(int status)
{
    switch (status) {
    case 0:
        return 0;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
        return EACCES; /* refused by the lender's device: the key has ended */
    case IBV_WC_RETRY_EXC_ERR:
    case RC_CONN_SILENT:
        return ETIMEDOUT;
    default:
        return ECONNRESET;
    }
}

static int carry_out(struct verbs_mover *mover, uint32_t count)
{
    unsigned done;
    if (mover->ended) {
        return ECONNRESET;
    }
    int error = error_of(rc_conn_carry_out(&mover->conn, mover->transfers, count, mover->deadline_ms / 1e3, &done));
    mover->ended = error != 0;
    return error;
}

/* Describe one transfer; EINVAL: it is not within the region. */
static int describe(struct verbs_tier *verbs, uint32_t each, uint64_t slot, uint32_t count, const char *local,
                    bool is_read)
{
    if (slot >= verbs->slots || count > verbs->slots - slot || count > TIER_MOST_SLOTS) {
        return EINVAL;
    }
    verbs->mover->transfers[each] = (Transfer){.address = verbs->address + slot * PAGE_BYTES,
                                               .local = (char *)(uintptr_t)local, /* only a read changes it */
                                               .rkey = verbs->rkey,
                                               .size = count * PAGE_BYTES,
                                               .is_read = is_read};
    return 0;
}

static int adjacent(struct tier *tier, uint64_t slot, uint32_t count, const char *local, bool is_read)
{
    struct verbs_tier *verbs = (struct verbs_tier *)tier;
    pthread_mutex_lock(&verbs->mover->turn);
    int error = describe(verbs, 0, slot, count, local, is_read);
    error = error != 0 ? error : carry_out(verbs->mover, 1);
    pthread_mutex_unlock(&verbs->mover->turn);
    return error;
}

static int scattered(struct tier *tier, const uint32_t *slots, uint32_t count, const char *local, bool is_read)
{
    struct verbs_tier *verbs = (struct verbs_tier *)tier;
    int error = count > TIER_MOST_SLOTS ? EINVAL : 0;
    pthread_mutex_lock(&verbs->mover->turn);
    for (uint32_t each = 0; each < count && error == 0; each++) {
        error = describe(verbs, each, slots[each], 1, local + (size_t)each * PAGE_BYTES, is_read);
    }
    error = error != 0 || count == 0 ? error : carry_out(verbs->mover, count);
    pthread_mutex_unlock(&verbs->mover->turn);
    return error;
}

static int verbs_read(struct tier *tier, uint64_t slot, uint32_t count, void *into)
{
    return adjacent(tier, slot, count, into, true);
}

static int verbs_write(struct tier *tier, uint64_t slot, uint32_t count, const void *from)
{
    return adjacent(tier, slot, count, from, false);
}

static int verbs_gather(struct tier *tier, const uint32_t *slots, uint32_t count, void *into)
{
    return scattered(tier, slots, count, into, true);
}

static int verbs_scatter(struct tier *tier, const uint32_t *slots, uint32_t count, const void *from)
{
    return scattered(tier, slots, count, from, false);
}

static int verbs_discard(struct tier *tier, uint64_t slot, uint32_t count)
{
    (void)tier;
    (void)slot;
    (void)count;
    return 0; /* the region is all there, and its lender's; what is in it is sealed */
}

static void verbs_close(struct tier *tier)
{
    (void)tier; /* the connection is the link's */
}

static const struct tier_type verbs_type = {
    .name = "verbs",
    .read = verbs_read,
    .write = verbs_write,
    .gather = verbs_gather,
    .scatter = verbs_scatter,
    .discard = verbs_discard,
    .close = verbs_close,
};

void verbs_tier_begin(struct verbs_tier *made, struct verbs_mover *mover, uint64_t slots, uint64_t address,
                      uint32_t rkey)
{
    *made = (struct verbs_tier){
        .tier = {&verbs_type}, .mover = mover, .slots = slots, .address = address, .rkey = rkey};
}
