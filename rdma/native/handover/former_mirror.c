#include "former_mirror.h"

#include <errno.h>

/* Open the source's mirror, if there is one to be used. */
static bool opened(struct incoming *incoming)
{
    struct problem problem;
    if (incoming->apart || incoming->former.tier.type != NULL) {
        return !incoming->apart;
    }
    incoming->apart = incoming->from.mirror[0] == '\0' || !incoming->pager->store->sealed ||
                      file_tier_open_former(&incoming->former, incoming->from.mirror, incoming->pager->pages,
                                            &problem) != 0;
    return !incoming->apart;
}

static int copy(struct incoming *incoming, uint32_t first, uint32_t count)
{
    struct page_store *store = incoming->pager->store;
    struct peer_answer answer;
    uint32_t lent = store_know_lent(store, first, count);
    if (lent == 0) {
        return 0; /* the source is to give it; or it says nothing now, and is asked again */
    }
    int error = incoming_ask(incoming, (struct peer_request){PEER_MIRROR, first, lent}, &answer, NULL);
    return error != 0 ? error : store_mirror_former(store, &incoming->former.tier, first, lent, incoming->pager->buffer);
}

int former_mirror_take(struct incoming *incoming, uint32_t first, uint32_t count)
{
    if (opened(incoming)) {
        int error = copy(incoming, first, count);
        if (error == 0 || error == EAGAIN) {
            return error;
        }
        incoming->apart = true;
    }
    return store_mirror_lent(incoming->pager->store, first, count, incoming->pager->buffer);
}

void former_mirror_end(struct incoming *incoming)
{
    if (incoming->former.tier.type != NULL) {
        incoming->former.tier.type->close(&incoming->former.tier);
        incoming->former.tier.type = NULL;
    }
}
