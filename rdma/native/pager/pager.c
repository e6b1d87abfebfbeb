#define _GNU_SOURCE
#include "pager.h"

#include "eviction.h"
#include "faults.h"
#include "residency.h"
#include "userfault.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { RETRY_MS = 200 };

int pager_begin(struct pager *pager, const struct target *target, const struct memory *memory, int userfault_fd,
                struct page_store *store, const struct pager_settings *settings, struct problem *problem)
{
    memset(pager, 0, sizeof *pager);
    pager->pages = (uint32_t)(memory->bytes / PAGE_BYTES);
    pager->store = store;
    pager->policy = settings->policy;
    read_ahead_begin(&pager->read_ahead, settings->read_ahead);
    pager->chunk = settings->chunk;
    pager->evicted = 1;
    pager->limit_pages = settings->limit_pages;
    pager->policy_memory = calloc(1, pager->policy->size_bytes(pager->pages));
    pager->flags = calloc(pager->pages, sizeof *pager->flags);
    pager->evicted_at = calloc(pager->pages, sizeof *pager->evicted_at);
    pager->buffer = aligned_alloc(PAGE_BYTES, (size_t)STORE_MOST_PAGES * PAGE_BYTES);
    pager->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pager->userfault_fd = pager->memory.fd = pager->target.pidfd = -1; /* the caller's, until all is well */
    if (pager->policy_memory == NULL || pager->flags == NULL || pager->evicted_at == NULL || pager->buffer == NULL ||
        pager->wake_fd < 0) {
        pager_end(pager);
        return problem_set(problem, "no memory for the tables of %u pages", pager->pages);
    }
    pager->policy->begin(pager->policy_memory, pager->pages, settings->parameter);
    pager->target = *target;
    pager->memory = *memory;
    pager->userfault_fd = userfault_fd;
    return 0;
}

int pager_take_over(struct pager *pager, struct problem *problem)
{
    if (residency_scan(pager, problem) != 0) {
        return -1;
    }
    /* What a dead pager had protected is free again, and whose event it had read asks again. */
    userfault_protect(pager->userfault_fd, pager->memory.address, pager->memory.bytes, false);
    userfault_wake(pager->userfault_fd, pager->memory.address, pager->memory.bytes);
    return 0;
}

/* Have those wait no longer whose page the store did not give: they ask again. */
static void try_again(struct pager *pager)
{
    if (pager->retry) {
        pager->retry = false;
        userfault_wake(pager->userfault_fd, pager->memory.address, pager->memory.bytes);
    }
}

/* Wait for something to do, up to so long (-1: for ever). */
static enum pager_end look(struct pager *pager, int timeout_ms)
{
    const struct chore *chore = atomic_load(&pager->chore);
    bool outlives = chore != NULL && atomic_load(&chore->outlives);
    struct pollfd fds[] = {
        {.fd = pager->userfault_fd, .events = POLLIN},
        {.fd = pager->wake_fd, .events = POLLIN},
        {.fd = outlives ? -1 : pager->target.pidfd, .events = POLLIN},
        {.fd = chore == NULL ? -1 : chore->fd, .events = POLLIN},
    };
    uint64_t told;
    poll(fds, sizeof fds / sizeof *fds, timeout_ms);
    if (fds[1].revents != 0) {
        (void)!read(pager->wake_fd, &told, sizeof told);
    }
    try_again(pager);
    outlives = chore != NULL && atomic_load(&chore->outlives);
    return fds[2].revents == 0 || outlives ? STILL_RUNS : ENDED_GUEST_GONE;
}

static enum pager_end leave(struct pager *pager)
{
    int error = userfault_unregister(pager->userfault_fd, pager->memory.address, pager->memory.bytes);
    if (error != 0 && error != ESRCH) {
        problem_set(&pager->problem, "the guest's memory cannot be let go of: %s", strerror(error));
        return ENDED_FAILED;
    }
    return ENDED_DETACHED;
}

bool pager_freeze(struct pager *pager, bool frozen)
{
    int error = pager->userfault_fd < 0 ? 0
                                        : userfault_protect(pager->userfault_fd, pager->memory.address,
                                                            pager->memory.bytes, frozen);
    bool done = error == 0 || error == ESRCH; /* ESRCH: the process has ended, and writes no more */
    pager->frozen = pager->frozen || frozen;
    pager->frozen = done && !frozen ? false : pager->frozen;
    return done;
}

/* What to do when there is no event; milliseconds until the next turn, -1: until something happens. */
static int pages_turn(struct pager *pager)
{
    uint32_t due = atomic_load(&pager->order) == ORDER_HOLD ? 0 : eviction_due(pager);
    if (due > 0) {
        return evict(pager, due) > 0 ? 0 : RETRY_MS;
    }
    return pager->retry ? RETRY_MS : -1;
}

static int idle_turn(struct pager *pager)
{
    struct chore *chore = atomic_load(&pager->chore);
    int due_ms = chore == NULL ? -1 : chore->turn(chore, pager);
    int pages_ms = pager->frozen ? -1 : pages_turn(pager);
    return due_ms < 0 || (pages_ms >= 0 && pages_ms < due_ms) ? pages_ms : due_ms;
}

/* Whether the pager's chore has to wait, as there was an event. */
static bool busy(const struct pager *pager, int events, uint32_t *reads)
{
    *reads = events > 0 ? *reads + 1 : 0;
    return events > 0 && (atomic_load(&pager->chore) == NULL || *reads % CHORE_EVENTS != 0);
}

void pager_run(struct pager *pager)
{
    enum pager_end end = STILL_RUNS;
    uint32_t cursor = 0, reads = 0;
    while (end == STILL_RUNS) {
        int order = atomic_load(&pager->order), pause;
        if (atomic_load(&pager->sweep)) {
            atomic_store(&pager->sweep, false);
            leases_sweep(&pager->store->leases);
        }
        int events = serve_events(pager);
        if (events < 0) {
            end = ENDED_FAILED;
            problem_set(&pager->problem, "the guest's userfaultfd cannot be read: %s", strerror(errno));
        } else if (order == ORDER_STOP) {
            end = ENDED_STOPPED;
        } else if (busy(pager, events, &reads)) {
            continue;
        } else if (order == ORDER_DETACH) {
            end = bring_home(pager, &cursor) ? look(pager, pager->retry ? RETRY_MS : 0) : leave(pager);
        } else if ((pause = idle_turn(pager)) != 0) {
            end = look(pager, pause);
        }
        end = end == STILL_RUNS ? pager->chore_end : end;
    }
    atomic_store(&pager->end, (int)end);
}

void pager_tell(struct pager *pager)
{
    uint64_t one = 1;
    (void)!write(pager->wake_fd, &one, sizeof one);
}

void pager_set_limit(struct pager *pager, uint32_t pages)
{
    atomic_store(&pager->limit_pages, pages);
    pager_tell(pager);
}

void pager_set_order(struct pager *pager, enum pager_order order)
{
    atomic_store(&pager->order, (int)order);
    pager_tell(pager);
}

void pager_sweep(struct pager *pager)
{
    atomic_store(&pager->sweep, true);
    pager_tell(pager);
}

void pager_set_chore(struct pager *pager, struct chore *chore)
{
    atomic_store(&pager->chore, chore);
    pager_tell(pager);
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

void pager_end(struct pager *pager)
{
    free(pager->policy_memory);
    free(pager->flags);
    free(pager->evicted_at);
    free(pager->buffer);
    pager->policy_memory = pager->flags = NULL;
    pager->evicted_at = NULL;
    pager->buffer = NULL;
    close_fd(&pager->wake_fd);
    close_fd(&pager->userfault_fd);
    close_fd(&pager->memory.fd);
    target_close(&pager->target);
}
