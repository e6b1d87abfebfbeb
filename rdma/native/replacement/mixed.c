/* Mixed (Zombieland, section 6.2): "The Clock policy is applied to the first x elements of the FIFO list (e.g. x = 5).
 * If no page is obtained, the FIFO policy is applied to the rest of the list." The parameter is x.
 */
#include "fifo.h"

static uint32_t mixed_victim(void *memory, accessed_function accessed, void *context)
{
    struct fifo *fifo = memory;
    uint32_t page = fifo->queue.oldest;
    for (uint32_t looks = 0; looks < fifo->parameter && page != NO_PAGE; looks++) {
        if (!accessed(context, page)) {
            break;
        }
        page = fifo->links[page].newer;
    }
    if (page == NO_PAGE) {
        page = fifo->queue.oldest; /* all of a short queue was accessed */
    }
    if (page != NO_PAGE) {
        queue_remove(&fifo->queue, fifo->links, page);
    }
    return page;
}

const struct policy_type mixed_policy = {
    .name = "mixed",
    .default_parameter = 5,
    .size_bytes = fifo_size_bytes,
    .begin = fifo_begin,
    .admit = fifo_admit,
    .forget = fifo_forget,
    .victim = mixed_victim,
};
