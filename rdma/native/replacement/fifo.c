/* FIFO: the page whose fault is the longest ago (Zombieland, section 6.2). */
#include "fifo.h"

size_t fifo_size_bytes(uint32_t pages)
{
    return sizeof(struct fifo) + (size_t)pages * sizeof(struct page_links);
}

void fifo_begin(void *memory, uint32_t pages, uint32_t parameter)
{
    struct fifo *fifo = memory;
    (void)pages;
    queue_begin(&fifo->queue);
    fifo->parameter = parameter;
}

void fifo_admit(void *memory, uint32_t page)
{
    struct fifo *fifo = memory;
    queue_push(&fifo->queue, fifo->links, page);
}

void fifo_forget(void *memory, uint32_t page)
{
    struct fifo *fifo = memory;
    queue_remove(&fifo->queue, fifo->links, page);
}

static uint32_t fifo_victim(void *memory, accessed_function accessed, void *context)
{
    struct fifo *fifo = memory;
    (void)accessed;
    (void)context;
    return queue_pop(&fifo->queue, fifo->links);
}

const struct policy_type fifo_policy = {
    .name = "fifo",
    .size_bytes = fifo_size_bytes,
    .begin = fifo_begin,
    .admit = fifo_admit,
    .forget = fifo_forget,
    .victim = fifo_victim,
};
