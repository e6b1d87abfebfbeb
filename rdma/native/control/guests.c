#define _GNU_SOURCE
#include "guests.h"

#include "handover.h"
#include "record.h"

#include <dirent.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

static struct guest *add(struct guests *guests, const struct guest_settings *settings)
{
    struct guest *guest = guests->count < MOST_GUESTS ? calloc(1, sizeof *guest) : NULL;
    if (guest != NULL) {
        guest->settings = *settings;
        guests->list[guests->count++] = guest;
    }
    return guest;
}

static void drop(struct guests *guests, struct guest *guest)
{
    for (uint32_t at = 0; at < guests->count; at++) {
        if (guests->list[at] == guest) {
            guests->list[at] = guests->list[--guests->count];
            break;
        }
    }
    free(guest);
}

/* Tell it in the log, once: an attachment that fails is tried again all the time. */
static void report(struct guest *guest)
{
    if (strcmp(guest->told.text, guest->problem.text) != 0) {
        fprintf(stderr, "guest %s: %s\n", guest->settings.guest, guest->problem.text);
        guest->told = guest->problem;
    }
}

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), ended = strlen(ending);
    return size > ended && strcmp(text + size - ended, ending) == 0;
}

void guests_begin(struct guests *guests, const char *folder, const struct client *client)
{
    char path[PATH_BYTES];
    *guests = (struct guests){.folder = folder, .client = *client};
    snprintf(path, sizeof path, "%s/guests", folder);
    DIR *records = opendir(path);
    for (struct dirent *entry; records != NULL && (entry = readdir(records)) != NULL;) {
        struct guest_settings settings;
        struct problem problem;
        if (!ends_with(entry->d_name, ".json")) {
            continue;
        }
        snprintf(path, sizeof path, "%s/guests/%s", folder, entry->d_name);
        if (record_read(path, &settings, &problem) != 0) {
            fprintf(stderr, "%s\n", problem.text);
        } else if (add(guests, &settings) == NULL) {
            fprintf(stderr, "guest %s: there are %d guests already\n", settings.guest, MOST_GUESTS);
        }
    }
    if (records != NULL) {
        closedir(records);
    }
    blocks_begin(&guests->blocks, folder);
    guests_look(guests);
}

struct guest *guests_find(const struct guests *guests, const char *guest)
{
    for (uint32_t at = 0; at < guests->count; at++) {
        if (strcmp(guests->list[at]->settings.guest, guest) == 0) {
            return guests->list[at];
        }
    }
    return NULL;
}

/* Whether a path is that of a file right in a folder. */
static bool lies_in(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    bool inside = strncmp(path, folder, size) == 0 && path[size] == '/';
    return inside && path[size + 1] != '\0' && path[size + 1] != '.' && strchr(path + size + 1, '/') == NULL;
}

bool guests_allow(const struct guests *guests, const struct guest_settings *settings, struct problem *problem)
{
    const char *mirrors = guests->client.mirrors;
    if (mirrors != NULL && !lies_in(settings->mirror, mirrors)) {
        problem_set(problem, "mirror: %s is no file of %s, where this data plane makes mirrors", settings->mirror,
                    mirrors);
        return false;
    }
    const char *former = settings->incoming ? settings->source.mirror : "";
    if (mirrors != NULL && former[0] != '\0' && !lies_in(former, mirrors)) {
        problem_set(problem, "incoming: mirror: %s is no file of %s, where this data plane has mirrors", former, mirrors);
        return false;
    }
    if (mirrors != NULL && !target_is_guest(settings->pid, settings->guest)) {
        problem_set(problem, "process %d was not started with -uuid %s", settings->pid, settings->guest);
        return false;
    }
    return true;
}

bool guests_allow_block(const struct guests *guests, const struct block_settings *settings, struct problem *problem)
{
    const char *mirrors = guests->client.mirrors;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s.sock", guests->folder, settings->block);
    if (mirrors != NULL && (!lies_in(settings->mirror, mirrors) || strcmp(settings->socket, path) != 0)) {
        problem_set(problem, "mirror, socket: only a file of %s and %s are made here", mirrors, path);
        return false;
    }
    return true;
}

int guests_attach(struct guests *guests, const struct guest_settings *settings, struct problem *problem)
{
    struct guest *guest = guests_find(guests, settings->guest);
    if (guest != NULL) {
        bool same = guest->settings.pid == settings->pid && strcmp(guest->settings.memory, settings->memory) == 0;
        return same && guest->serves && !guest->settings.detaching
                   ? 0
                   : problem_set(problem, "guest %s is attached already, as process %d; see `view`", settings->guest,
                                 guest->settings.pid);
    }
    guest = add(guests, settings);
    if (guest == NULL) {
        return problem_set(problem, "there are %d guests already", MOST_GUESTS);
    }
    /* The record first: whatever of the attachment a death leaves, the next process goes on with it. The process must
     * be there, so that the record tells it from a later one with its number. */
    struct target target;
    int failed = target_open(&target, settings->pid, settings->started, problem);
    if (!failed) {
        guest->settings.started = target.started;
        target_close(&target);
        failed = record_write(guests->folder, &guest->settings, problem);
    }
    if (!failed && guest_attach(guest) != 0) {
        *problem = guest->problem;
        failed = -1;
        record_remove(guests->folder, settings->guest);
    }
    OPENSSL_cleanse(&guest->settings.key, sizeof guest->settings.key); /* the shared state has it */
    if (failed) {
        drop(guests, guest);
    }
    return failed;
}

int guests_set_limit(struct guests *guests, struct guest *guest, uint32_t limit_mib, struct problem *problem)
{
    struct guest_settings wanted = guest->settings;
    wanted.limit_mib = limit_mib;
    if (record_write(guests->folder, &wanted, problem) != 0) {
        return -1;
    }
    guest_set_limit(guest, limit_mib);
    return 0;
}

int guests_detach(struct guests *guests, struct guest *guest, struct problem *problem)
{
    struct guest_settings wanted = guest->settings;
    if (handover_runs(guest)) {
        return problem_set(problem, "guest %s is being handed over; see `withdraw`", guest->settings.guest);
    }
    wanted.detaching = true;
    if (record_write(guests->folder, &wanted, problem) != 0) {
        return -1;
    }
    guest_detach(guest);
    return 0;
}

/* Go on with a guest that is not served; true when it is over with it. */
static bool look_at(struct guest *guest)
{
    guest_tidy(guest);
    enum pager_end end = guest_settle(guest);
    if (end == ENDED_DETACHED || end == ENDED_GUEST_GONE || end == ENDED_HANDED_OVER) {
        return true;
    }
    if (end != STILL_RUNS) {
        report(guest);
    } else if (!guest->serves && !guest->settings.switched &&
               !target_lives(guest->settings.pid, guest->settings.started)) {
        return true;
    } else if (!guest->serves && guest_attach(guest) != 0) {
        report(guest);
        return guest->key_lost;
    }
    return false;
}

void guests_look(struct guests *guests)
{
    for (uint32_t at = guests->count; at > 0; at--) {
        struct guest *guest = guests->list[at - 1];
        handover_look(guests, guest);
        if (look_at(guest)) {
            guest_remove_files(guest);
            keeper_end(&guest->settings.keeper); /* before its record: else nobody would know of it */
            record_remove(guests->folder, guest->settings.guest);
            drop(guests, guest);
        }
    }
    blocks_look(&guests->blocks);
    kept_links_look(&guests->links); /* last: a lost one that nobody uses any more goes at once */
}

void guests_end(struct guests *guests)
{
    while (guests->count > 0) {
        guest_stop(guests->list[0]);
        drop(guests, guests->list[0]);
    }
    blocks_end(&guests->blocks);
    kept_links_end(&guests->links);
}
