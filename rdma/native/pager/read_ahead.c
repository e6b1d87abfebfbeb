#include "read_ahead.h"

enum { FIRST_WINDOW = 2 };

void read_ahead_begin(struct read_ahead *ahead, uint32_t most)
{
    *ahead = (struct read_ahead){.most = most < MOST_READ_AHEAD ? most : MOST_READ_AHEAD};
    for (uint32_t at = 0; at < RUNS; at++) {
        ahead->runs[at].expected = UINT32_MAX;
    }
}

uint32_t read_ahead_wanted(struct read_ahead *ahead, uint32_t page)
{
    for (uint32_t at = 0; at < RUNS; at++) {
        struct run_of_faults *run = &ahead->runs[at];
        if (run->expected == page) {
            uint32_t wider = run->window == 0 ? FIRST_WINDOW : run->window * 2;
            run->window = wider < ahead->most ? wider : ahead->most;
            ahead->current = at;
            return run->window + 1;
        }
    }
    ahead->current = ahead->next;
    ahead->next = (ahead->next + 1) % RUNS;
    ahead->runs[ahead->current].window = 0;
    return 1;
}

void read_ahead_came(struct read_ahead *ahead, uint32_t page, uint32_t count)
{
    ahead->runs[ahead->current].expected = page + (count > 0 ? count : 1);
}
