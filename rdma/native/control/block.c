#define _GNU_SOURCE
#include "block.h"

#include "../pager/crash_point.h"
#include "../store/journal.h"
#include "lenders.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

static uint64_t pages_of(uint32_t mib)
{
    return (uint64_t)mib * BLOCK_PAGES_PER_MIB;
}

static void name_of(const struct block *block, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s%s", SHARED_STATE_NAME, block->settings.block);
}

static void clear(struct block *block)
{
    block->state = (struct shared_state){0};
    block->store = (struct page_store){0};
    block->mirror = (struct file_tier){.fd = -1};
    block->memfd = -1;
    block->problem.text[0] = '\0';
}

/* Release what was begun; idempotent. */
static void release(struct block *block)
{
    lenders_release(&block->lenders, &block->store.leases, true);
    store_end(&block->store);
    if (block->mirror.tier.type != NULL) {
        block->mirror.tier.type->close(&block->mirror.tier);
    }
    state_close(&block->state);
    if (block->memfd >= 0) {
        close(block->memfd);
        block->memfd = -1;
    }
}

int block_create(struct block *block)
{
    char name[NAME_BYTES];
    const struct block_settings *settings = &block->settings;
    clear(block);
    name_of(block, name);
    block->memfd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int failed = block->memfd < 0 ? problem_set(&block->problem, "no memfd: %s", strerror(errno)) : 0;
    failed = failed || state_create(&block->state, block->memfd, pages_of(settings->most_mib), sizeof(struct journal),
                                    settings->block, settings->sealed, &block->problem);
    failed = failed || file_tier_open(&block->mirror, settings->mirror, pages_of(settings->mib), true, &block->problem);
    failed = failed || store_begin(&block->store, &block->state, &block->mirror.tier, &block->problem);
    if (failed) {
        if (block->mirror.fd >= 0) {
            unlink(settings->mirror); /* made by this */
        }
        release(block);
        return -1;
    }
    CRASH_POINT("created");
    return 0;
}

static int replay(struct block *block)
{
    int error = journal_replay(&block->store);
    return error == 0 ? 0
                      : problem_set(&block->problem, "what a killed process was writing cannot be written: %s",
                                    strerror(error));
}

int block_resume(struct block *block)
{
    char name[NAME_BYTES];
    const struct block_settings *settings = &block->settings;
    clear(block);
    name_of(block, name);
    block->memfd = keeper_open(&settings->keeper, name, &block->problem);
    int failed = block->memfd < 0;
    failed = failed || state_open(&block->state, block->memfd, pages_of(settings->most_mib), sizeof(struct journal),
                                  settings->block, &block->problem);
    failed = failed || file_tier_reopen(&block->mirror, settings->mirror, pages_of(settings->mib), &block->problem);
    failed = failed || store_begin(&block->store, &block->state, &block->mirror.tier, &block->problem);
    failed = failed || replay(block);
    if (failed) {
        release(block);
        return -1;
    }
    return 0;
}

int block_serve(struct block *block)
{
    const struct block_settings *settings = &block->settings;
    bool resumed = atomic_load(&block->state.header->phase) == PHASE_ATTACHED;
    atomic_store(&block->state.header->phase, PHASE_ATTACHED);
    if (exporter_begin(&block->exporter, &block->store, pages_of(settings->mib) * PAGE_BYTES, settings->block,
                       settings->socket, settings->user, resumed, &block->problem) != 0) {
        release(block);
        return -1;
    }
    block->serves = true;
    return 0;
}

void block_stop(struct block *block)
{
    if (block->serves) {
        exporter_end(&block->exporter);
        block->serves = false;
        release(block);
    }
}

/* Take what is stored from whoever could still read it. */
static void forget(struct block *block)
{
    state_forget_key(&block->state);
    CRASH_POINT("forgotten");
    uint64_t pages = pages_of(block->settings.mib);
    for (uint64_t at = 0; at < pages; at += BLOCK_PAGES_PER_MIB) { /* also for who has the file open */
        (void)block->mirror.tier.type->discard(&block->mirror.tier, at, BLOCK_PAGES_PER_MIB);
    }
}

void block_destroy(struct block *block)
{
    if (block->serves) {
        exporter_end(&block->exporter);
        block->serves = false;
        forget(block);
        release(block);
    }
    struct stat found;
    if (lstat(block->settings.socket, &found) == 0 && S_ISSOCK(found.st_mode)) {
        unlink(block->settings.socket);
    }
    unlink(block->settings.mirror);
    CRASH_POINT("unlinked");
    keeper_end(&block->settings.keeper);
}

int block_set_room(struct block *block, uint32_t mib, struct problem *problem)
{
    return file_tier_resize(&block->mirror, pages_of(mib), problem);
}

int block_set_size(struct block *block, uint32_t mib, struct problem *problem)
{
    if (!exporter_resize(&block->exporter, pages_of(mib) * PAGE_BYTES)) {
        return problem_set(problem,
                           "block %s cannot end at %u MiB: pages behind that are in use, or it is too busy; have its "
                           "user trim them, and try again",
                           block->settings.block, mib);
    }
    return 0;
}

int block_lease(struct block *block, const struct lease_request *request, struct problem *problem)
{
    if (!block->serves) {
        return problem_set(problem, "block %s is not served", block->settings.block);
    }
    return lenders_lease(&block->lenders, &block->store.leases, request, problem);
}

bool block_leave(struct block *block, const char *name, uint64_t number)
{
    bool found = block->serves && lenders_leave(block->lenders, name, number);
    if (found) {
        exporter_sweep(&block->exporter);
    }
    return found;
}

void block_tidy(struct block *block)
{
    if (block->serves) {
        lenders_look(block->lenders);
        lenders_release(&block->lenders, &block->store.leases, false);
    }
}
