/* How many pages to fetch with a fault: more and more while faults of a run follow each other. Pure.
 *
 * Several runs are known at a time, since several processors of a guest may each read one. One thread at a time.
 */
#ifndef PONDSTACK_PAGER_READ_AHEAD_H
#define PONDSTACK_PAGER_READ_AHEAD_H

#include <stdint.h>

enum { RUNS = 8, MOST_READ_AHEAD = 32 };

struct read_ahead {
    struct run_of_faults {
        uint32_t expected; /* the page after the last one that came with it */
        uint32_t window;   /* pages that came ahead with its last fault */
    } runs[RUNS];
    uint32_t most;    /* pages ahead, with one fault */
    uint32_t next;    /* the run that is forgotten for a new one */
    uint32_t current; /* the run of the last fault */
};

/* Begin, with no run known. */
void read_ahead_begin(struct read_ahead *ahead, uint32_t most);

/* A page is missing: how many to fetch from it on, itself included. */
uint32_t read_ahead_wanted(struct read_ahead *ahead, uint32_t page);

/* So many came. */
void read_ahead_came(struct read_ahead *ahead, uint32_t page, uint32_t count);

#endif
