/* S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP'23): a small queue that most pages
 * leave at once, a main queue for those that are wanted again, and a ghost queue of the pages that left the small one.
 *
 * The paper counts accesses up to three; here is one accessed bit per page, asked when the page comes up. The parameter
 * is the share of the small queue, in percent (10 in the paper). The ghost queue remembers as many pages as are
 * resident.
 */
#include "page_queue.h"

enum place { NOWHERE, SMALL, MAIN, GHOST };

struct s3_fifo {
    struct page_queue small, main, ghost;
    uint32_t small_percent;
    uint32_t pages;
    struct page_links links[]; /* behind them, a byte per page: its place */
};

static uint8_t *places(struct s3_fifo *s3)
{
    return (uint8_t *)(s3->links + s3->pages);
}

static size_t s3_fifo_size_bytes(uint32_t pages)
{
    return sizeof(struct s3_fifo) + (size_t)pages * (sizeof(struct page_links) + 1);
}

static void s3_fifo_begin(void *memory, uint32_t pages, uint32_t parameter)
{
    struct s3_fifo *s3 = memory;
    queue_begin(&s3->small);
    queue_begin(&s3->main);
    queue_begin(&s3->ghost);
    s3->small_percent = parameter;
    s3->pages = pages;
}

static struct page_queue *queue_at(struct s3_fifo *s3, enum place place)
{
    return place == SMALL ? &s3->small : place == MAIN ? &s3->main : &s3->ghost;
}

static void put(struct s3_fifo *s3, enum place place, uint32_t page)
{
    queue_push(queue_at(s3, place), s3->links, page);
    places(s3)[page] = (uint8_t)place;
}

static void take(struct s3_fifo *s3, uint32_t page)
{
    queue_remove(queue_at(s3, places(s3)[page]), s3->links, page);
    places(s3)[page] = NOWHERE;
}

static void s3_fifo_admit(void *memory, uint32_t page)
{
    struct s3_fifo *s3 = memory;
    bool wanted_again = places(s3)[page] == GHOST;
    if (wanted_again) {
        take(s3, page);
    }
    put(s3, wanted_again ? MAIN : SMALL, page);
}

static void s3_fifo_forget(void *memory, uint32_t page)
{
    take(memory, page);
}

static void remember(struct s3_fifo *s3, uint32_t page)
{
    put(s3, GHOST, page);
    while (s3->ghost.count > s3->small.count + s3->main.count + 1) {
        take(s3, s3->ghost.oldest);
    }
}

static uint32_t s3_fifo_victim(void *memory, accessed_function accessed, void *context)
{
    struct s3_fifo *s3 = memory;
    uint32_t resident = s3->small.count + s3->main.count;
    /* Each page gets another chance once at most in a call, however quickly pages are accessed again. */
    for (uint32_t chances = resident; resident > 0;) {
        bool from_small =
            s3->main.count == 0 || (uint64_t)s3->small.count * 100 > (uint64_t)resident * s3->small_percent;
        uint32_t page = from_small ? s3->small.oldest : s3->main.oldest;
        take(s3, page);
        if (chances > 0 && accessed(context, page)) {
            chances--;
            put(s3, MAIN, page);
            continue;
        }
        if (from_small) {
            remember(s3, page);
        }
        return page;
    }
    return NO_PAGE;
}

const struct policy_type s3_fifo_policy = {
    .name = "s3-fifo",
    .default_parameter = 10,
    .size_bytes = s3_fifo_size_bytes,
    .begin = s3_fifo_begin,
    .admit = s3_fifo_admit,
    .forget = s3_fifo_forget,
    .victim = s3_fifo_victim,
};
