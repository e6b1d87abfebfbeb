/* Zombieland's micro benchmark (EuroSys'18, section 6.1): "iterates and performs read/write operations on the entries
 * of an array"; an entry is a page, and all of its words are read, verified and written.
 *
 * microbenchmark MIB PASSES SEED PATTERN SECONDS, where PATTERN is sequential, skewed (80 % of accesses to 20 % of the
 * pages), or touch (random pages, one word an access: for measuring faults). Fills its array, prints "ready", waits for
 * a byte of input, makes as many accesses as PASSES over the array have, prints JSON (seconds, accesses, `missing` of
 * them to pages that were not resident, by mincore, how long the latter took, wrong words), and stays until its input
 * ends. It gives up after SECONDS, with fewer accesses.
 */
#define _GNU_SOURCE
#include "../../../rdma/native/pager/latency.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, HUGE = 2 << 20, CHECK_TIME = 256 };

enum pattern { SEQUENTIAL, SKEWED, TOUCH };
static const char *const names[] = {"sequential", "skewed", "touch"};

static char *memory;
static uint64_t pages, seed, dice, wrong, missing;
static struct latencies latencies;

/* splitmix64 */
static uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

/* A memfd, as a guest's memory is one; aligned, so that no huge page makes the ways differ. */
static char *array(size_t bytes)
{
    int fd = memfd_create("ram-node0", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        return MAP_FAILED;
    }
    char *room = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *start = (char *)(((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
    return mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
}

static uint64_t first_word(uint64_t page, uint64_t at)
{
    return mix(seed ^ page ^ at << 40);
}

static void fill(void)
{
    for (uint64_t page = 0; page < pages; page++) {
        for (uint64_t at = 0; at < WORDS; at++) {
            ((uint64_t *)(memory + page * PAGE))[at] = first_word(page, at);
        }
    }
}

static uint64_t choose(enum pattern pattern, uint64_t number)
{
    if (pattern == SEQUENTIAL) {
        return number % pages;
    }
    dice = mix(dice);
    uint64_t draw = dice >> 16;
    return pattern == SKEWED && draw % 10 < 8 ? draw / 10 % (pages / 5 + 1) : draw / 10 % pages;
}

/* Verify a part of the words, change all of them. */
static void change(uint64_t page, uint64_t number)
{
    uint64_t *words = (uint64_t *)(memory + page * PAGE);
    uint64_t changed = words[0] ^ first_word(page, 0); /* as all words of the page have been */
    for (uint64_t at = 0; at < WORDS; at += 8) {
        wrong += (words[at] ^ changed) != first_word(page, at);
    }
    for (uint64_t at = 0; at < WORDS; at++) {
        words[at] ^= number + 1;
    }
}

static void touch(uint64_t page)
{
    volatile uint64_t *words = (uint64_t *)(memory + page * PAGE);
    unsigned char there = 0;
    mincore(memory + page * PAGE, PAGE, &there);
    uint64_t begun = clock_ns(), found = words[1];
    if (dice & 1) {
        words[1] = found;
    }
    if ((there & 1) == 0) {
        missing++;
        latency_record(&latencies, clock_ns() - begun);
    }
    wrong += found != first_word(page, 1);
}

static bool parse(int count, char **arguments, enum pattern *pattern)
{
    if (count != 6) {
        return false;
    }
    pages = strtoull(arguments[1], NULL, 10) * 256;
    seed = strtoull(arguments[3], NULL, 10);
    for (*pattern = SEQUENTIAL; *pattern <= TOUCH && strcmp(names[*pattern], arguments[4]) != 0; (*pattern)++) {
    }
    return pages > 0 && *pattern <= TOUCH;
}

int main(int count, char **arguments)
{
    enum pattern pattern;
    if (!parse(count, arguments, &pattern) || (memory = array(pages * PAGE)) == MAP_FAILED) {
        return 2;
    }
    uint64_t accesses = pages * strtoull(arguments[2], NULL, 10), done = 0;
    dice = mix(seed);
    fill();
    puts("ready");
    fflush(stdout);
    getchar();
    uint64_t begun = clock_ns(), ends = begun + (uint64_t)(atof(arguments[5]) * 1e9);
    for (; done < accesses && (done % CHECK_TIME != 0 || clock_ns() < ends); done++) {
        uint64_t page = choose(pattern, done);
        if (pattern == TOUCH) {
            touch(page);
        } else {
            change(page, done);
        }
    }
    printf("{\"seconds\": %.6f, \"accesses\": %lu, \"whole\": %s, \"wrong\": %lu, \"missing\": %lu, \"p50_ns\": %lu, "
           "\"p99_ns\": %lu}\n",
           (double)(clock_ns() - begun) / 1e9, done, done == accesses ? "true" : "false", wrong, missing,
           latency_percentile(&latencies, 50), latency_percentile(&latencies, 99));
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
