/* Queues of pages that share one array of links: a page is in one queue at most. All operations take constant time. */
#ifndef PONDSTACK_REPLACEMENT_PAGE_QUEUE_H
#define PONDSTACK_REPLACEMENT_PAGE_QUEUE_H

#include "policy.h"

struct page_links {
    uint32_t older;
    uint32_t newer;
};

/* Where pages enter at the newest end, and are taken from the oldest. */
struct page_queue {
    uint32_t oldest;
    uint32_t newest;
    uint32_t count;
};

static inline void queue_begin(struct page_queue *queue)
{
    *queue = (struct page_queue){.oldest = NO_PAGE, .newest = NO_PAGE};
}

static inline void queue_push(struct page_queue *queue, struct page_links *links, uint32_t page)
{
    links[page] = (struct page_links){.older = queue->newest, .newer = NO_PAGE};
    if (queue->newest == NO_PAGE) {
        queue->oldest = page;
    } else {
        links[queue->newest].newer = page;
    }
    queue->newest = page;
    queue->count++;
}

static inline void queue_remove(struct page_queue *queue, struct page_links *links, uint32_t page)
{
    struct page_links around = links[page];
    if (around.older == NO_PAGE) {
        queue->oldest = around.newer;
    } else {
        links[around.older].newer = around.newer;
    }
    if (around.newer == NO_PAGE) {
        queue->newest = around.older;
    } else {
        links[around.newer].older = around.older;
    }
    queue->count--;
}

/* Remove and return the oldest page; NO_PAGE when the queue is empty. */
static inline uint32_t queue_pop(struct page_queue *queue, struct page_links *links)
{
    uint32_t page = queue->oldest;
    if (page != NO_PAGE) {
        queue_remove(queue, links, page);
    }
    return page;
}

#endif
