/* One queue of all resident pages: what FIFO, Clock and Mixed share. */
#ifndef PONDSTACK_REPLACEMENT_FIFO_H
#define PONDSTACK_REPLACEMENT_FIFO_H

#include "page_queue.h"

struct fifo {
    struct page_queue queue;
    uint32_t parameter;
    struct page_links links[];
};

size_t fifo_size_bytes(uint32_t pages);
void fifo_begin(void *memory, uint32_t pages, uint32_t parameter);
void fifo_admit(void *memory, uint32_t page);
void fifo_forget(void *memory, uint32_t page);

#endif
