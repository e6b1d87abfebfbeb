#define _GNU_SOURCE
#include "attachment.h"

#include "../pager/crash_point.h"
#include "../pager/injection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char USERFAULT_LINK[] = "anon_inode:[userfaultfd]";

/* Whether a process of a former data plane has attached it. */
static bool was_attached(uint32_t phase)
{
    return phase == PHASE_ATTACHED || phase == PHASE_INCOMING || phase == PHASE_TAKING || phase == PHASE_FROZEN;
}

static int open_descriptor(const struct target *target, int number, struct problem *problem)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", target->pid, number);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        problem_set(problem, "descriptor %d of process %d cannot be opened: %s%s", number, target->pid,
                    strerror(errno), target_denial(errno));
    }
    return fd;
}

/* Have a new table, also after a detachment: a new key, and no versions. */
static int create_state(struct guest *guest, int fd, uint64_t pages, int32_t userfault_fd)
{
    const struct guest_settings *settings = &guest->settings;
    state_close(&guest->state);
    guest->key_lost = settings->incoming && !settings->key.known;
    if (guest->key_lost) {
        return problem_set(&guest->problem, "the key of the hand-over ended with a former process: attach it anew");
    }
    if (state_create(&guest->state, fd, pages, 0, settings->guest, settings->sealed, &guest->problem) != 0) {
        return -1;
    }
    atomic_store(&guest->state.header->userfault_fd, userfault_fd);
    memcpy(guest->state.header->session_key, settings->key.bytes, KEY_BYTES);
    if (settings->incoming) {
        incoming_clear(&guest->state);
    }
    return 0;
}

/* See that a table is of an attachment such as this one. */
static int check_phase(struct guest *guest)
{
    uint32_t phase = atomic_load(&guest->state.header->phase);
    if (phase == PHASE_SWITCHED) {
        return problem_set(&guest->problem, "guest %s was handed over to another data plane", guest->settings.guest);
    }
    if ((phase == PHASE_INCOMING || phase == PHASE_TAKING) && !guest->settings.incoming) {
        return problem_set(&guest->problem, "guest %s is still with another data plane", guest->settings.guest);
    }
    return 0;
}

/* Find the shared state that the guest's process holds, or have it hold a new one. */
static int open_state(struct guest *guest, struct attachment *attachment)
{
    char name[NAME_BYTES], link[NAME_BYTES * 2];
    const struct target *target = &attachment->target;
    uint64_t pages = attachment->memory.bytes / PAGE_BYTES;
    snprintf(name, sizeof name, "%s%s", SHARED_STATE_NAME, guest->settings.guest);
    snprintf(link, sizeof link, "/memfd:%s (", name);
    int number = target_descriptor(target, link);
    if (number < 0) {
        number = inject_memfd(target, name, &guest->problem);
    }
    int fd = number < 0 ? -1 : open_descriptor(target, number, &guest->problem);
    if (fd < 0) {
        return -1;
    }
    CRASH_POINT("state");
    struct problem none;
    int32_t userfault_fd = -1;
    int result = 0;
    attachment->fresh = true;
    if (state_open(&guest->state, fd, pages, 0, guest->settings.guest, &none) == 0) {
        userfault_fd = atomic_load(&guest->state.header->userfault_fd);
        attachment->fresh = !was_attached(atomic_load(&guest->state.header->phase));
        result = check_phase(guest);
    }
    if (result == 0 && attachment->fresh) {
        result = create_state(guest, fd, pages, userfault_fd);
    }
    close(fd);
    return result;
}

/* Get the guest's userfaultfd, which stays open in its process: with the last reference to it, holes would read as
 * zeros. */
static int open_userfault(struct guest *guest, struct attachment *attachment)
{
    int number = atomic_load(&guest->state.header->userfault_fd);
    if (number < 0 || !target_has(&attachment->target, number, USERFAULT_LINK)) {
        if (!attachment->fresh) {
            return problem_set(&guest->problem, "process %d has lost its userfaultfd: its evicted pages are gone",
                               attachment->target.pid);
        }
        number = inject_userfaultfd(&attachment->target, &guest->problem);
        if (number < 0) {
            return -1;
        }
        CRASH_POINT("userfault");
        atomic_store(&guest->state.header->userfault_fd, number);
    }
    attachment->userfault_fd = target_duplicate(&attachment->target, number, &guest->problem);
    return attachment->userfault_fd < 0 ? -1 : 0;
}

/* Find the process and its memory. */
static int open_target(struct guest *guest, struct attachment *attachment)
{
    *attachment = (struct attachment){.target = {.pidfd = -1}, .memory = {.fd = -1}, .userfault_fd = -1};
    if (target_open(&attachment->target, guest->settings.pid, guest->settings.started, &guest->problem) != 0 ||
        target_memory(&attachment->target, guest->settings.memory, &attachment->memory, &guest->problem) != 0) {
        return -1;
    }
    if (attachment->memory.bytes % PAGE_BYTES != 0 || attachment->memory.bytes / PAGE_BYTES >= NO_PAGE) {
        return problem_set(&guest->problem, "memory of %llu bytes is not supported",
                           (unsigned long long)attachment->memory.bytes);
    }
    return 0;
}

int attachment_open(struct attachment *attachment, struct guest *guest)
{
    int failed = open_target(guest, attachment);
    failed = failed || open_state(guest, attachment);
    failed = failed || open_userfault(guest, attachment);
    return failed ? -1 : 0;
}

void attachment_close(struct attachment *attachment)
{
    target_close(&attachment->target);
    if (attachment->memory.fd >= 0) {
        close(attachment->memory.fd);
    }
    if (attachment->userfault_fd >= 0) {
        close(attachment->userfault_fd);
    }
}
