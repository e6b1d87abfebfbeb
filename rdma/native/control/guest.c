#define _GNU_SOURCE
#include "guest.h"

#include "attachment.h"
#include "lenders.h"
#include "remains.h"

#include "../pager/crash_point.h"
#include "../pager/injection.h"
#include "../pager/userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int begin_pager(struct guest *guest, const struct attachment *attachment)
{
    struct pager_settings settings = {
        .policy = policy_named(guest->settings.policy),
        .parameter = guest->settings.parameter,
        .limit_pages = guest->settings.limit_mib * PAGES_PER_MIB,
        .read_ahead = guest->settings.read_ahead_pages,
        .chunk = guest->settings.chunk_pages,
    };
    return pager_begin(&guest->pager, &attachment->target, &attachment->memory, attachment->userfault_fd, &guest->store,
                       &settings, &guest->problem);
}

void *guest_serve(void *pager)
{
    pager_run(pager);
    return NULL;
}

/* Once the memory is registered, since from then on only the pager makes pages: see that there are no huge ones, that
 * the kernel puts none together, and that no child inherits the mapping, for which holes would be zeros. */
static int fix_mapping(const struct pager *pager, struct problem *problem)
{
    if (inject_advice(&pager->target, &pager->memory, MADV_NOHUGEPAGE, problem) < 0 ||
        inject_advice(&pager->target, &pager->memory, MADV_DONTFORK, problem) < 0) {
        return -1;
    }
    return target_check_pages(&pager->target, &pager->memory, problem);
}

/* What the pager does beside faults: take the guest over from its source, go on with offering it, or nothing until it is
 * handed over. */
static int begin_chore(struct guest *guest)
{
    outgoing_begin(&guest->outgoing, &guest->pager);
    if (guest->settings.incoming) {
        incoming_begin(&guest->incoming, &guest->pager, &guest->state, &guest->settings.source);
    } else if (guest->settings.offered) {
        return remains_offer(guest);
    } else {
        OPENSSL_cleanse(guest->state.header->session_key, KEY_BYTES);
        pager_set_chore(&guest->pager, &guest->outgoing.chore);
    }
    return 0;
}

static void end_pager(struct guest *guest)
{
    incoming_end(&guest->incoming);
    outgoing_end(&guest->outgoing);
    pager_end(&guest->pager);
}

/* The memory of a guest that comes is empty, whatever its process has in it: what it has is not the guest's. */
static int empty_memory(const struct pager *pager, struct problem *problem)
{
    const struct memory *memory = &pager->memory;
    int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (fallocate(memory->fd, mode, (off_t)memory->offset, (off_t)memory->bytes) != 0) {
        return problem_set(problem, "the memory of process %d cannot be emptied: %s", pager->target.pid,
                           strerror(errno));
    }
    return 0;
}

/* A thread that began to give a page up before the memory was watched tells nobody: evicted before it is done, the page
 * would come back. Where one does not get on (it waits for a disk), a guest is served rather than refused. */
static void await_discards(const struct guest *guest)
{
    struct problem problem;
    if (inject_barrier(&guest->pager.target, &problem) != 0) {
        fprintf(stderr, "guest %s: what it gave up just now may come back: %s\n", guest->settings.guest, problem.text);
    }
}

/* Undo the beginning of an attachment. The memory of one that goes on stays registered: its holes are not zeros. */
static int give_up(struct guest *guest, bool fresh)
{
    if (fresh) {
        userfault_unregister(guest->pager.userfault_fd, guest->pager.memory.address, guest->pager.memory.bytes);
        atomic_store(&guest->state.header->phase, PHASE_NEW);
        unlink(guest->settings.mirror);
    }
    return -1;
}

/* Register the memory, and start the thread. The pager owns what the attachment had. */
static int begin_serving(struct guest *guest, bool fresh)
{
    struct pager *pager = &guest->pager;
    int error = userfault_register(pager->userfault_fd, pager->memory.address, pager->memory.bytes);
    if (error != 0) {
        problem_set(&guest->problem, "the memory of process %d cannot be registered: %s; Linux 5.19 is needed",
                    pager->target.pid, strerror(error));
        return give_up(guest, fresh);
    }
    CRASH_POINT("registered");
    bool incoming = guest->settings.incoming, holds = fresh && !incoming && !guest->settings.detaching;
    pager_set_order(pager, guest->settings.detaching ? ORDER_DETACH : holds ? ORDER_HOLD : ORDER_SERVE);
    error = fresh ? fix_mapping(pager, &guest->problem) : 0;
    error = error == 0 && fresh && incoming ? empty_memory(pager, &guest->problem) : error;
    if (error == 0) {
        if (fresh) { /* not before: whoever goes on after a death takes the mapping for fixed. Nothing was evicted. */
            atomic_store(&guest->state.header->phase, incoming ? PHASE_INCOMING : PHASE_ATTACHED);
        }
        CRASH_POINT("attached");
        error = pager_take_over(pager, &guest->problem);
    }
    error = error == 0 ? pthread_create(&guest->thread, NULL, guest_serve, pager) : error;
    if (error > 0) {
        problem_set(&guest->problem, "no thread: %s", strerror(error));
    }
    if (error == 0 && holds) {
        await_discards(guest);
        pager_set_order(pager, ORDER_SERVE);
    }
    return error == 0 ? 0 : give_up(guest, fresh);
}

static void release(struct guest *guest)
{
    lenders_release(&guest->lenders, &guest->store.leases, true);
    store_end(&guest->store);
    if (guest->mirror.tier.type != NULL) {
        guest->mirror.tier.type->close(&guest->mirror.tier);
    }
    state_close(&guest->state);
}

static void clear(struct guest *guest)
{
    guest->state = (struct shared_state){0};
    guest->store = (struct page_store){0};
    guest->mirror = (struct file_tier){.fd = -1};
    guest->incoming = (struct incoming){0};
    guest->outgoing = (struct outgoing){0};
    guest->problem.text[0] = '\0';
}

int guest_attach(struct guest *guest)
{
    struct attachment attachment;
    struct problem *problem = &guest->problem;
    clear(guest);
    if (guest->settings.switched) {
        int result = remains_resume(guest);
        if (result != 0) {
            release(guest);
        }
        return result;
    }
    int failed = attachment_open(&attachment, guest);
    failed = failed || file_tier_open(&guest->mirror, guest->settings.mirror, attachment.memory.bytes / PAGE_BYTES,
                                      attachment.fresh, problem);
    failed = failed || store_begin(&guest->store, &guest->state, &guest->mirror.tier, problem);
    failed = failed || begin_pager(guest, &attachment);
    if (failed) {
        if (attachment.fresh && guest->mirror.fd >= 0) {
            unlink(guest->settings.mirror); /* made by this */
        }
        attachment_close(&attachment);
        release(guest);
        return -1;
    }
    guest->settings.started = attachment.target.started;
    if (begin_chore(guest) != 0 || begin_serving(guest, attachment.fresh) != 0) {
        end_pager(guest);
        release(guest);
        return -1;
    }
    guest->serves = true;
    return 0;
}

void guest_set_limit(struct guest *guest, uint32_t limit_mib)
{
    guest->settings.limit_mib = limit_mib;
    if (guest->serves) {
        pager_set_limit(&guest->pager, limit_mib * PAGES_PER_MIB);
    }
}

int guest_lease(struct guest *guest, const struct lease_request *request, struct problem *problem)
{
    if (!guest->serves || guest->settings.detaching) {
        return problem_set(problem, "guest %s is not served, or detaches", guest->settings.guest);
    }
    return lenders_lease(&guest->lenders, &guest->store.leases, request, problem);
}

bool guest_leave(struct guest *guest, const char *name, uint64_t number)
{
    bool found = guest->serves && lenders_leave(guest->lenders, name, number);
    if (found) {
        pager_sweep(&guest->pager);
    }
    return found;
}

void guest_tidy(struct guest *guest)
{
    if (guest->serves) {
        lenders_look(guest->lenders);
        lenders_release(&guest->lenders, &guest->store.leases, false);
    }
}

void guest_detach(struct guest *guest)
{
    guest->settings.detaching = true;
    if (guest->serves) {
        pager_set_order(&guest->pager, ORDER_DETACH);
    }
}

enum pager_end guest_settle(struct guest *guest)
{
    enum pager_end end = (enum pager_end)atomic_load(&guest->pager.end);
    if (!guest->serves || end == STILL_RUNS) {
        return STILL_RUNS;
    }
    pthread_join(guest->thread, NULL);
    guest->serves = false;
    guest->problem = guest->pager.problem;
    if (end == ENDED_DETACHED) {
        atomic_store(&guest->state.header->phase, PHASE_HOME);
        CRASH_POINT("home");
    }
    if (end == ENDED_DETACHED || end == ENDED_HANDED_OVER) {
        state_forget_key(&guest->state);
    }
    end_pager(guest);
    release(guest);
    return end;
}

void guest_remove_files(const struct guest *guest)
{
    unlink(guest->settings.mirror);
}

void guest_stop(struct guest *guest)
{
    if (guest->serves) {
        pager_set_order(&guest->pager, ORDER_STOP);
        pthread_join(guest->thread, NULL);
        guest->serves = false;
        end_pager(guest);
        release(guest);
    }
}
