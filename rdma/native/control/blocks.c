#define _GNU_SOURCE
#include "blocks.h"

#include "../pager/crash_point.h"
#include "block_record.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

static struct block *add(struct blocks *blocks, const struct block_settings *settings)
{
    struct block *block = blocks->count < MOST_BLOCKS ? calloc(1, sizeof *block) : NULL;
    if (block != NULL) {
        block->settings = *settings;
        block->memfd = -1;
        blocks->list[blocks->count++] = block;
    }
    return block;
}

static void drop(struct blocks *blocks, struct block *block)
{
    for (uint32_t at = 0; at < blocks->count; at++) {
        if (blocks->list[at] == block) {
            blocks->list[at] = blocks->list[--blocks->count];
            break;
        }
    }
    free(block);
}

/* Tell it in the log, once: what fails is tried again all the time. */
static void report(struct block *block)
{
    if (strcmp(block->told.text, block->problem.text) != 0) {
        fprintf(stderr, "block %s: %s\n", block->settings.block, block->problem.text);
        block->told = block->problem;
    }
}

/* Start a keeper for a block that has a memfd, and write down which. */
static int keep(struct blocks *blocks, struct block *block)
{
    struct block_settings wanted = block->settings;
    char record[RECORD_PATH_BYTES];
    block_record_path(record, blocks->folder, wanted.block);
    int confirmation = keeper_start(&wanted.keeper, block->memfd, -1, record, &block->problem);
    if (confirmation < 0) {
        return -1;
    }
    CRASH_POINT("keeper");
    if (block_record_write(blocks->folder, &wanted, &block->problem) != 0) {
        close(confirmation);
        keeper_end(&wanted.keeper);
        return -1;
    }
    CRASH_POINT("recorded");
    keeper_confirm(confirmation);
    block->settings = wanted;
    return 0;
}

/* Begin a block of which nothing was acknowledged. */
static int begin_new(struct blocks *blocks, struct block *block)
{
    if (block_create(block) != 0) {
        return -1;
    }
    if (keep(blocks, block) != 0 || block_serve(block) != 0) {
        struct problem problem = block->problem;
        block_destroy(block);
        block->settings.keeper = (struct keeper){0};
        block->problem = problem;
        return -1;
    }
    return 0;
}

/* Go on with a block that has a record: one without a keeper was not acknowledged to anybody. */
static int go_on(struct blocks *blocks, struct block *block)
{
    if (block->settings.keeper.pid == 0) {
        return begin_new(blocks, block);
    }
    return block_resume(block) != 0 ? -1 : block_serve(block);
}

static bool is_record(const char *name)
{
    size_t size = strlen(name);
    return size > 5 && strcmp(name + size - 5, ".json") == 0;
}

void blocks_begin(struct blocks *blocks, const char *folder)
{
    char path[PATH_BYTES];
    *blocks = (struct blocks){.folder = folder};
    snprintf(path, sizeof path, "%s/blocks", folder);
    DIR *records = opendir(path);
    for (struct dirent *entry; records != NULL && (entry = readdir(records)) != NULL;) {
        struct block_settings settings;
        struct problem problem;
        if (!is_record(entry->d_name)) {
            continue;
        }
        snprintf(path, sizeof path, "%s/blocks/%s", folder, entry->d_name);
        if (block_record_read(path, &settings, &problem) != 0) {
            fprintf(stderr, "%s\n", problem.text);
        } else if (add(blocks, &settings) == NULL) {
            fprintf(stderr, "block %s: there are %d blocks already\n", settings.block, MOST_BLOCKS);
        }
    }
    if (records != NULL) {
        closedir(records);
    }
    blocks_look(blocks);
}

struct block *blocks_find(const struct blocks *blocks, const char *block)
{
    for (uint32_t at = 0; at < blocks->count; at++) {
        if (strcmp(blocks->list[at]->settings.block, block) == 0) {
            return blocks->list[at];
        }
    }
    return NULL;
}

/* Whether another block has its file or its socket. */
static bool is_taken(const struct blocks *blocks, const struct block_settings *settings)
{
    for (uint32_t at = 0; at < blocks->count; at++) {
        const struct block_settings *other = &blocks->list[at]->settings;
        if (strcmp(other->mirror, settings->mirror) == 0 || strcmp(other->socket, settings->socket) == 0) {
            return true;
        }
    }
    return false;
}

static bool same(const struct block_settings *one, const struct block_settings *other)
{
    return strcmp(one->mirror, other->mirror) == 0 && strcmp(one->socket, other->socket) == 0 &&
           one->user == other->user && one->most_mib == other->most_mib && one->sealed == other->sealed;
}

int blocks_export(struct blocks *blocks, const struct block_settings *settings, struct problem *problem)
{
    struct block *block = blocks_find(blocks, settings->block);
    if (block != NULL) {
        return same(&block->settings, settings) && block->serves
                   ? 0
                   : problem_set(problem, "block %s is exported already, with other settings or not served; see `view`",
                                 settings->block);
    }
    if (is_taken(blocks, settings)) {
        return problem_set(problem, "another block has the mirror %s or the socket %s", settings->mirror,
                           settings->socket);
    }
    block = add(blocks, settings);
    if (block == NULL) {
        return problem_set(problem, "there are %d blocks already", MOST_BLOCKS);
    }
    /* The record first: whatever a death leaves, the next process goes on with it. */
    int failed = block_record_write(blocks->folder, settings, &block->problem) != 0 || begin_new(blocks, block) != 0;
    if (failed) {
        *problem = block->problem;
        block_record_remove(blocks->folder, settings->block);
        drop(blocks, block);
    }
    return failed ? -1 : 0;
}

int blocks_resize(struct blocks *blocks, struct block *block, uint32_t mib, struct problem *problem)
{
    struct block_settings wanted = block->settings;
    wanted.mib = mib;
    /* At each moment the mirror has the room of what the record says, and the record what is served. */
    bool grows = mib > block->settings.mib;
    int failed = grows ? block_set_room(block, mib, problem) : block_set_size(block, mib, problem);
    failed = failed || block_record_write(blocks->folder, &wanted, problem);
    CRASH_POINT("resized");
    failed = failed || (grows ? block_set_size(block, mib, problem) : block_set_room(block, mib, problem));
    if (failed && !grows) {
        struct problem ignored; /* what could be used before can be used on */
        (void)block_set_size(block, block->settings.mib, &ignored);
        return -1;
    }
    block->settings.mib = failed ? block->settings.mib : mib;
    return failed ? -1 : 0;
}

static void end(struct blocks *blocks, struct block *block)
{
    block_destroy(block);
    CRASH_POINT("destroyed");
    block_record_remove(blocks->folder, block->settings.block);
    drop(blocks, block);
}

int blocks_unexport(struct blocks *blocks, struct block *block, struct problem *problem)
{
    struct block_settings wanted = block->settings;
    wanted.ending = true;
    if (block_record_write(blocks->folder, &wanted, problem) != 0) {
        return -1;
    }
    end(blocks, block);
    return 0;
}

static void look_at(struct blocks *blocks, struct block *block)
{
    block_tidy(block);
    if (block->settings.ending) {
        end(blocks, block);
    } else if (!block->serves ? go_on(blocks, block) != 0
                              : !keeper_lives(&block->settings.keeper) && keep(blocks, block) != 0) {
        report(block);
    }
}

void blocks_look(struct blocks *blocks)
{
    for (uint32_t at = blocks->count; at > 0; at--) {
        look_at(blocks, blocks->list[at - 1]);
    }
}

void blocks_end(struct blocks *blocks)
{
    while (blocks->count > 0) {
        block_stop(blocks->list[0]);
        drop(blocks, blocks->list[0]);
    }
}
