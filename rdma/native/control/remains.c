#define _GNU_SOURCE
#include "remains.h"

#include "record.h"

#include "../pager/crash_point.h"
#include "../pager/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void name_of(const struct guest *guest, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s%s", SHARED_STATE_NAME, guest->settings.guest);
}

/* Open the shared state that the guest's process holds, once more. */
static int open_state(const struct guest *guest, struct problem *problem)
{
    char name[NAME_BYTES], link[NAME_BYTES * 2], path[64];
    const struct target *target = &guest->pager.target;
    name_of(guest, name);
    snprintf(link, sizeof link, "/memfd:%s (", name);
    int number = target_descriptor(target, link);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", target->pid, number);
    int fd = number < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    return fd >= 0 ? fd : problem_set(problem, "process %d does not give its table of pages any more", target->pid);
}

int remains_keep(struct guest *guest, const char *folder, struct problem *problem)
{
    char path[1024];
    struct guest_settings wanted = guest->settings;
    int state = open_state(guest, problem);
    if (state < 0) {
        return -1;
    }
    guest->state.header->memory_offset = guest->pager.memory.offset;
    snprintf(path, sizeof path, "%s/guests/%s.json", folder, guest->settings.guest);
    wanted.offered = true;
    snprintf(wanted.source.host, sizeof wanted.source.host, "%s", guest->outgoing.host);
    wanted.source.port = door_port(&guest->outgoing.door);
    wanted.source.deadline_ms = guest->outgoing.deadline_ms;
    int confirmation = keeper_start(&wanted.keeper, state, guest->pager.memory.fd, path, problem);
    close(state);
    if (confirmation < 0) {
        return -1;
    }
    CRASH_POINT("kept");
    int result = record_write(folder, &wanted, problem);
    if (result == 0) {
        CRASH_POINT("recorded");
        guest->settings = wanted;
        keeper_confirm(confirmation);
    } else {
        close(confirmation);
        keeper_end(&wanted.keeper);
    }
    return result;
}

int remains_switch(struct guest *guest, const char *folder, struct problem *problem)
{
    struct guest_settings wanted = guest->settings;
    wanted.offered = false;
    wanted.switched = true;
    int result = record_write(folder, &wanted, problem);
    if (result == 0) {
        guest->settings = wanted;
        CRASH_POINT("recorded as switched");
    }
    return result;
}

void remains_let_go(struct guest *guest, const char *folder)
{
    struct guest_settings wanted = guest->settings;
    wanted.offered = false;
    wanted.keeper = (struct keeper){0};
    keeper_end(&guest->settings.keeper); /* before its record: else nobody would know of it */
    if (record_write(folder, &wanted, &guest->problem) == 0) {
        guest->settings = wanted;
    }
}

/* Listen where the record says. */
static int listen_again(struct guest *guest)
{
    const struct state_header *header = guest->state.header;
    const struct origin_address *at = &guest->settings.source;
    return outgoing_open(&guest->outgoing, at->host, at->port, header->session_key, header->guest, header->session,
                         at->deadline_ms, &guest->problem);
}

int remains_offer(struct guest *guest)
{
    if (listen_again(guest) != 0) {
        return -1;
    }
    if (atomic_load(&guest->state.header->phase) == PHASE_FROZEN) {
        outgoing_resume(&guest->outgoing, OUT_FROZEN);
    } else {
        outgoing_offer(&guest->outgoing);
    }
    pager_set_chore(&guest->pager, &guest->outgoing.chore);
    return 0;
}

/* The guest's pages, of a file that nobody uses any more. */
static int open_memory(const struct guest *guest, struct memory *memory, struct problem *problem)
{
    const struct state_header *header = guest->state.header;
    *memory = (struct memory){.bytes = header->pages * PAGE_BYTES, .offset = header->memory_offset};
    memory->fd = keeper_open_file(&guest->settings.keeper, problem);
    return memory->fd < 0 ? -1 : 0;
}

/* Open the table: how many pages it has, it says itself. */
static int reopen_state(struct guest *guest)
{
    char name[NAME_BYTES];
    uint64_t pages = 0;
    name_of(guest, name);
    int fd = keeper_open(&guest->settings.keeper, name, &guest->problem);
    guest->key_lost = fd < 0; /* with the keeper, the pages are gone */
    if (fd < 0) {
        return -1;
    }
    (void)!pread(fd, &pages, sizeof pages, offsetof(struct state_header, pages));
    int result = state_open(&guest->state, fd, pages, 0, guest->settings.guest, &guest->problem);
    close(fd);
    return result;
}

static int begin_pager(struct guest *guest, const struct memory *memory)
{
    struct target gone = {.pid = guest->settings.pid, .pidfd = -1};
    struct pager_settings settings = {
        .policy = policy_named(guest->settings.policy),
        .parameter = guest->settings.parameter,
        .limit_pages = guest->settings.limit_mib * PAGES_PER_MIB,
    };
    if (pager_begin(&guest->pager, &gone, memory, -1, &guest->store, &settings, &guest->problem) != 0) {
        close(memory->fd);
        return -1;
    }
    outgoing_begin(&guest->outgoing, &guest->pager);
    pager_set_chore(&guest->pager, &guest->outgoing.chore);
    int failed = residency_scan(&guest->pager, &guest->problem);
    failed = failed || listen_again(guest);
    outgoing_resume(&guest->outgoing, OUT_SWITCHED);
    int error = failed ? 0 : pthread_create(&guest->thread, NULL, guest_serve, &guest->pager);
    if (failed || error != 0) {
        outgoing_end(&guest->outgoing);
        pager_end(&guest->pager);
        return failed ? -1 : problem_set(&guest->problem, "no thread: %s", strerror(error));
    }
    return 0;
}

int remains_resume(struct guest *guest)
{
    struct memory memory;
    int failed = reopen_state(guest);
    uint64_t pages = failed ? 0 : guest->state.header->pages;
    failed = failed || file_tier_reopen(&guest->mirror, guest->settings.mirror, pages, &guest->problem);
    failed = failed || store_begin(&guest->store, &guest->state, &guest->mirror.tier, &guest->problem);
    failed = failed || open_memory(guest, &memory, &guest->problem);
    failed = failed || begin_pager(guest, &memory);
    guest->serves = !failed;
    return failed ? -1 : 0;
}
