/* Stands in for a guest: a process with a shared memfd, whose threads write words and verify every one that they read.
 *
 * standin_guest NAME MIB THREADS SEED PATTERN, where PATTERN is random, sequential, skewed (80 % of accesses to 20 % of
 * the pages), discard (random, and now and then a page is given up), touch (random, one word an access: for measuring)
 * or hot:PERCENT:RATE (random within so many percent of the pages, so many accesses a second of each thread; the first
 * one says "beat" while it gets on, every 20 ms: whoever reads that sees how long it stood still). Words after that are
 * passed over. Of the environment: with STANDIN_REST each thread pauses for so many microseconds after 16 accesses, so
 * that others get on who share its cores; STANDIN_VERSIONS is a file, see below.
 *
 * Prints "ready"; at an "f" on its standard input it writes all pages once, and says "filled"; works from a "g" to an
 * "s", and says "stopped" then. Of the file STANDIN_VERSIONS: "e", once it is stopped, writes what the oracle knows, and
 * "i", in another process before it works, reads it: so that one verifies what the other one wrote. At the end of its
 * input it verifies all of its memory, and prints what it counted as JSON: accesses, `missing` of them to pages that
 * were not resident (by mincore), wrong words, and how long accesses to missing pages took.
 *
 * A thread owns the pages whose number has its remainder, and keeps their versions in private memory: the oracle.
 */
#define _GNU_SOURCE
#include "../../native/pager/latency.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20, WORDS = PAGE / 8, MOST_THREADS = 16, ACCESSES_A_REST = 16 };
enum pattern { RANDOM, SEQUENTIAL, SKEWED, DISCARD, TOUCH, HOT };
static const char *const pattern_names[] = {"random", "sequential", "skewed", "discard", "touch"};

static char *memory;
static uint32_t *versions; /* by page; 0: zeros */
static uint32_t pages, threads, percent, rate; /* the last two: of HOT */
static const uint64_t NS = 1000000000, BEAT_NS = 20000000;
static uint64_t seed;
static enum pattern pattern;
static struct timespec rest;
static _Atomic bool stop;
static struct latencies latencies;

struct worker {
    pthread_t thread;
    uint32_t number;
    uint32_t at; /* the last page, of those that it owns */
    uint64_t dice;
    uint64_t beat_ns;
    uint64_t accesses, missing, writes, discards, wrong;
};

/* splitmix64 */
static uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

static uint64_t roll(struct worker *worker)
{
    return worker->dice = mix(worker->dice);
}

static uint64_t word(uint32_t page, uint32_t version, uint32_t at)
{
    return version == 0 ? 0 : mix(seed ^ ((uint64_t)page << 32) ^ ((uint64_t)version << 10) ^ at);
}

static uint32_t choose(struct worker *worker)
{
    uint32_t own = pages / threads;
    uint64_t draw = roll(worker) >> 16;
    if (pattern == SEQUENTIAL) { /* each in a part of its own */
        worker->at = (worker->at + 1) % own;
        return worker->number * own + worker->at;
    }
    if (pattern == HOT) {
        worker->at = (uint32_t)(draw % ((uint64_t)own * percent / 100 + 1));
    } else if (pattern == SKEWED && draw % 10 < 8) {
        worker->at = (uint32_t)(draw / 10 % (own / 5 + 1));
    } else {
        worker->at = (uint32_t)(draw % own);
    }
    return worker->at * threads + worker->number;
}

static void verify(struct worker *worker, uint32_t page)
{
    const volatile uint64_t *words = (uint64_t *)(memory + (size_t)page * PAGE);
    for (uint32_t at = 0; at < (pattern == TOUCH ? 1 : WORDS); at++) {
        worker->wrong += words[at] != word(page, versions[page], at);
    }
}

static void put_words(uint32_t page)
{
    volatile uint64_t *words = (uint64_t *)(memory + (size_t)page * PAGE);
    versions[page]++;
    for (uint32_t at = 0; at < (pattern == TOUCH ? 1 : WORDS); at++) {
        words[at] = word(page, versions[page], at);
    }
}

static void write_page(struct worker *worker, uint32_t page)
{
    verify(worker, page);
    put_words(page);
    worker->writes++;
}

static bool is_missing(uint32_t page)
{
    unsigned char resident = 0;
    return mincore(memory + (size_t)page * PAGE, PAGE, &resident) == 0 && (resident & 1) == 0;
}

/* Of HOT: say that it gets on, and wait until the next access. */
static void pause_after(struct worker *worker)
{
    static const char said[] = "beat\n";
    struct timespec pause = {.tv_nsec = (long)(NS / rate % NS)};
    uint64_t now = clock_ns();
    if (worker->number == 0 && now - worker->beat_ns >= BEAT_NS) {
        worker->beat_ns = now;
        if (write(STDOUT_FILENO, said, sizeof said - 1) < 0) {
            stop = true;
        }
    }
    nanosleep(&pause, NULL);
}

static void *work(void *context)
{
    struct worker *worker = context;
    while (!stop) {
        uint32_t page = choose(worker);
        bool missing = is_missing(page);
        uint64_t begun = clock_ns(), draw = roll(worker);
        if (pattern == DISCARD && draw % 16 == 0) {
            madvise(memory + (size_t)page * PAGE, PAGE, MADV_REMOVE);
            versions[page] = 0;
            worker->discards++;
        } else if (draw & 1) {
            write_page(worker, page);
        } else {
            verify(worker, page);
        }
        worker->accesses++;
        if (missing) {
            worker->missing++;
            latency_record(&latencies, clock_ns() - begun);
        }
        if (pattern == HOT) {
            pause_after(worker);
        }
        if (rest.tv_nsec > 0 && worker->accesses % ACCESSES_A_REST == 0) {
            nanosleep(&rest, NULL);
        }
    }
    return NULL;
}

static bool parse(int count, char **arguments)
{
    if (count < 6) {
        return false;
    }
    pages = (uint32_t)atoi(arguments[2]) * 256;
    threads = (uint32_t)atoi(arguments[3]);
    seed = strtoull(arguments[4], NULL, 10);
    rest.tv_nsec = getenv("STANDIN_REST") == NULL ? 0 : atol(getenv("STANDIN_REST")) * 1000;
    if (sscanf(arguments[5], "hot:%u:%u", &percent, &rate) == 2) {
        pattern = HOT;
        return pages > 0 && threads > 0 && threads <= MOST_THREADS && percent > 0 && percent < 100 && rate > 0;
    }
    for (pattern = RANDOM; pattern <= TOUCH && strcmp(pattern_names[pattern], arguments[5]) != 0; pattern++) {
    }
    return pages > 0 && threads > 0 && threads <= MOST_THREADS && pattern <= TOUCH;
}

static bool make_memory(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)pages * PAGE) != 0) {
        return false;
    }
    /* Aligned, so that the kernel can use huge pages where it is asked to, as a QEMU asks. */
    size_t bytes = (size_t)pages * PAGE;
    char *room = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = (char *)(((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
    memory = mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    versions = calloc(pages, sizeof *versions);
    return memory != MAP_FAILED && versions != NULL &&
           (getenv("STANDIN_HUGE") == NULL || madvise(memory, bytes, MADV_HUGEPAGE) == 0);
}

/* Of a memory that is full, every access misses that finds its page evicted; else most pages were never touched. */
static void fill(void)
{
    for (uint32_t page = 0; page < pages; page++) {
        put_words(page);
    }
    puts("filled");
    fflush(stdout);
}

static void begin_work(struct worker *workers)
{
    for (uint32_t at = 0; at < threads; at++) {
        workers[at].number = at;
        workers[at].dice = mix(seed + at);
        pthread_create(&workers[at].thread, NULL, work, &workers[at]);
    }
}

/* End what was begun, and add up what was counted. */
static void end_work(struct worker *workers, struct worker *all)
{
    stop = true;
    for (uint32_t at = 0; at < threads; at++) {
        pthread_join(workers[at].thread, NULL);
        all->accesses += workers[at].accesses;
        all->missing += workers[at].missing;
        all->writes += workers[at].writes;
        all->discards += workers[at].discards;
        all->wrong += workers[at].wrong;
    }
    puts("stopped");
    fflush(stdout);
}

/* Write the oracle down, or know what another one knew. */
static void exchange(bool exports)
{
    const char *path = getenv("STANDIN_VERSIONS");
    FILE *file = path == NULL ? NULL : fopen(path, exports ? "w" : "r");
    size_t done = 0;
    if (file != NULL) {
        done = exports ? fwrite(versions, sizeof *versions, pages, file)
                       : fread(versions, sizeof *versions, pages, file);
        fclose(file);
    }
    puts(done == pages ? "exchanged" : "failed");
    fflush(stdout);
}

int main(int count, char **arguments)
{
    static struct worker workers[MOST_THREADS];
    struct worker all = {0};
    bool works = false;
    if (!parse(count, arguments) || !make_memory(arguments[1])) {
        return 2;
    }
    puts("ready");
    fflush(stdout);
    for (int verb; (verb = getchar()) != EOF;) {
        if (verb == 'f' && !works) {
            fill();
        } else if (verb == 'g' && !works) {
            begin_work(workers);
            works = true;
        } else if (verb == 's' && works && !stop) {
            end_work(workers, &all);
        } else if (verb == 'e' || verb == 'i') {
            exchange(verb == 'e');
        }
    }
    if (works && !stop) {
        end_work(workers, &all);
    }
    for (uint32_t page = 0; page < pages; page++) {
        verify(&all, page);
    }
    printf("{\"accesses\": %lu, \"missing\": %lu, \"writes\": %lu, \"discards\": %lu, \"wrong\": %lu, \"p50_ns\": %lu, "
           "\"p99_ns\": %lu, \"worst_ns\": %lu}\n",
           all.accesses, all.missing, all.writes, all.discards, all.wrong, latency_percentile(&latencies, 50),
           latency_percentile(&latencies, 99), (uint64_t)latencies.worst_ns);
    /* Where it is the init of a machine, its end is that kernel's panic, which would overtake what is on its way. */
    fflush(stdout);
    tcdrain(STDOUT_FILENO);
    return 0;
}
