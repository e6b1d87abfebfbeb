/* Clock, or second chance: a page that was accessed since the hand passed it goes to the newest end of the queue.
 *
 * Zombieland's Clock (section 6.2) leaves such a page where it is, and clears all bits now and then; here the hand
 * clears them as it passes, as everywhere else, so that no victim costs a look at the whole queue again and again.
 */
#include "fifo.h"

static uint32_t clock_victim(void *memory, accessed_function accessed, void *context)
{
    struct fifo *fifo = memory;
    /* One lap at most, however quickly pages are accessed again. */
    for (uint32_t looks = fifo->queue.count; looks > 0; looks--) {
        uint32_t page = queue_pop(&fifo->queue, fifo->links);
        if (!accessed(context, page)) {
            return page;
        }
        queue_push(&fifo->queue, fifo->links, page);
    }
    return queue_pop(&fifo->queue, fifo->links);
}

const struct policy_type clock_policy = {
    .name = "clock",
    .size_bytes = fifo_size_bytes,
    .begin = fifo_begin,
    .admit = fifo_admit,
    .forget = fifo_forget,
    .victim = clock_victim,
};
