#include "outgoing.h"

#include "../links/wire.h"
#include "../pager/crash_point.h"
#include "../pager/eviction.h"
#include "../pager/residency.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 10, LOOK_MS = 200 };
static const uint64_t NS_PER_MS = 1000000;

static enum outgoing_state state_of(const struct outgoing *outgoing)
{
    return (enum outgoing_state)atomic_load(&outgoing->state);
}

bool outgoing_change(struct outgoing *outgoing, enum outgoing_state from, enum outgoing_state to)
{
    int expected = (int)from;
    return atomic_compare_exchange_strong(&outgoing->state, &expected, (int)to);
}

/* Whether the destination may have pages. */
static bool serves(enum outgoing_state state)
{
    return state == OUT_FROZEN || state == OUT_SWITCHING || state == OUT_SWITCHED;
}

static void hang_up(struct outgoing *outgoing)
{
    if (outgoing->peer != NULL) {
        peer_end(outgoing->peer);
        free(outgoing->peer);
        outgoing->peer = NULL;
    }
    outgoing->chore.fd = -1;
    outgoing->tells = false;
    atomic_store(&outgoing->connected, false);
}

static void welcome(struct outgoing *outgoing)
{
    struct peer *came = door_take(&outgoing->door);
    if (came != NULL) {
        hang_up(outgoing);
        outgoing->peer = came;
        outgoing->chore.fd = came->fd;
        outgoing->heard_ns = wire_now_ns();
        atomic_store(&outgoing->connected, true);
    }
}

static enum page_kind kind_of(const struct pager *pager, uint32_t page)
{
    return is_resident(pager, page)             ? KIND_RESIDENT
           : store_has(pager->store, page) ? KIND_STORED
                                           : KIND_UNTOUCHED;
}

static uint32_t lent_pages(const struct pager *pager, uint32_t first, uint32_t count)
{
    uint32_t lent = 0, slot;
    for (uint32_t at = 0; at < count; at++) {
        lent += leases_where(&pager->store->leases, first + at, &slot) != NULL;
    }
    return lent;
}

/* Copy pages to the pager's buffer; how many, from the first on. */
static uint32_t gather(struct outgoing *outgoing, struct pager *pager, const struct peer_request *request)
{
    uint32_t at = 0, run;
    for (; at < request->count; at += run) {
        uint32_t first = request->first + at;
        uint8_t *into = pager->buffer + (size_t)at * PAGE_BYTES;
        enum page_kind kind = kind_of(pager, first);
        for (run = 1; at + run < request->count && kind_of(pager, first + run) == kind; run++) {
        }
        if ((kind == KIND_RESIDENT && !copy_pages(pager, first, run, into)) ||
            (kind == KIND_STORED && store_read(pager->store, first, run, into) != 0)) {
            COUNT(pager->counters, read_failures, 1);
            break;
        }
        if (kind == KIND_UNTOUCHED) {
            memset(into, 0, (size_t)run * PAGE_BYTES);
        }
        outgoing->resident_pages += kind == KIND_RESIDENT ? run : 0;
        outgoing->stored_pages += kind == KIND_STORED ? run : 0;
        outgoing->lent_pages += kind == KIND_STORED ? lent_pages(pager, first, run) : 0;
    }
    return at;
}

static struct peer_answer give_map(const struct outgoing *outgoing, struct pager *pager,
                                   const struct peer_request *request)
{
    for (uint32_t at = 0; at < request->count; at++) {
        enum page_kind kind = kind_of(pager, request->first + at);
        bool lent = outgoing->tells && kind == KIND_STORED && lent_pages(pager, request->first + at, 1) > 0;
        pager->buffer[at] = (uint8_t)(lent ? KIND_LENT : kind);
    }
    return (struct peer_answer){PEER_OK, request->count, request->count};
}

static struct peer_answer give_pages(struct outgoing *outgoing, struct pager *pager, const struct peer_request *request)
{
    uint32_t count = gather(outgoing, pager, request);
    return (struct peer_answer){count > 0 ? PEER_OK : PEER_NOT_YET, count, count * PAGE_BYTES};
}

/* The destination seals under the same key from now on, with a tenure that nobody else has; this side, should it have
 * the guest back, with the next one. */
static struct peer_answer give_keys(struct outgoing *outgoing, struct pager *pager, const struct peer_request *request)
{
    struct state_header *header = pager->store->state->header;
    struct peer_keys keys = {.sealed = header->sealed};
    bool more = atomic_load(&header->alone) == 0 && atomic_load(&header->tenure) + 2 <= MOST_TENURE;
    if (request->first == 1 && !more) {
        return (struct peer_answer){.status = PEER_REFUSED};
    }
    if (request->first == 1) {
        keys.tenure = atomic_fetch_add(&header->tenure, 2) + 1;
    }
    CRASH_POINT("tenure");
    memcpy(keys.key, header->key, KEY_BYTES);
    memcpy(pager->buffer, &keys, sizeof keys);
    OPENSSL_cleanse(&keys, sizeof keys);
    outgoing->tells = true;
    return (struct peer_answer){PEER_OK, request->count, sizeof keys};
}

static struct peer_answer give_rows(struct outgoing *outgoing, struct pager *pager, const struct peer_request *request)
{
    struct peer_row *rows = (struct peer_row *)pager->buffer; /* on a page's boundary */
    for (uint32_t at = 0; at < request->count; at++) {
        uint32_t page = request->first + at, slot;
        const struct page_row *row = &pager->store->state->rows[page];
        const struct lease *lease = leases_where(&pager->store->leases, page, &slot);
        rows[at] = (struct peer_row){.version = row->version, .slot = slot};
        memcpy(rows[at].tag, row->tag, TAG_BYTES);
        if (lease != NULL && kind_of(pager, page) == KIND_STORED) {
            memcpy(rows[at].buffer, lease->buffer, BUFFER_ID_BYTES);
            outgoing->told_pages++;
        }
    }
    return (struct peer_answer){PEER_OK, request->count, request->count * (uint32_t)sizeof *rows};
}

/* Nothing is written to the mirror any more: it is frozen. */
static struct peer_answer show_mirror(struct pager *pager, const struct peer_request *request)
{
    struct tier *mirror = pager->store->mirror;
    bool good = mirror->type->publish != NULL && mirror->type->publish(mirror, request->first, request->count) == 0;
    return good ? (struct peer_answer){PEER_OK, request->count, 0} : (struct peer_answer){.status = PEER_REFUSED};
}

static struct peer_answer freeze(struct outgoing *outgoing, struct pager *pager)
{
    if (outgoing_change(outgoing, OUT_OFFERED, OUT_FROZEN)) {
        atomic_store(&pager->store->state->header->phase, PHASE_FROZEN);
    }
    CRASH_POINT("freezing");
    outgoing->protects = outgoing->protects || pager_freeze(pager, true);
    CRASH_POINT("frozen");
    return (struct peer_answer){.status = outgoing->protects ? PEER_OK : PEER_NOT_YET};
}

static struct peer_answer join(const struct outgoing *outgoing, struct pager *pager,
                               const struct peer_request *request)
{
    if (request->count != pager->pages) {
        return (struct peer_answer){.status = PEER_REFUSED};
    }
    memcpy(pager->buffer, &outgoing->session, SESSION_BYTES);
    return (struct peer_answer){PEER_OK, request->count, SESSION_BYTES};
}

/* The payload, if there is one, is in the pager's buffer. */
static struct peer_answer carry_out(struct outgoing *outgoing, struct pager *pager, const struct peer_request *request)
{
    enum outgoing_state state = state_of(outgoing);
    if (request->verb == PEER_JOIN) {
        return join(outgoing, pager, request);
    }
    if (request->verb == PEER_FREEZE && (state == OUT_OFFERED || serves(state))) {
        return freeze(outgoing, pager);
    }
    if (!serves(state)) {
        return (struct peer_answer){.status = PEER_REFUSED};
    }
    if (!outgoing->protects) {
        return (struct peer_answer){.status = PEER_NOT_YET};
    }
    if (request->verb == PEER_DONE) {
        return (struct peer_answer){.status = state == OUT_SWITCHED ? PEER_OK : PEER_NOT_YET};
    }
    switch (request->verb) {
    case PEER_KEYS:
        return give_keys(outgoing, pager, request);
    case PEER_ROWS:
        return give_rows(outgoing, pager, request);
    case PEER_MIRROR:
        return show_mirror(pager, request);
    case PEER_MAP:
        return give_map(outgoing, pager, request);
    default:
        return give_pages(outgoing, pager, request);
    }
}

/* Answer one request; 0, EAGAIN while there is none, or an errno. */
static int answer(struct outgoing *outgoing, struct pager *pager)
{
    uint8_t message[MESSAGE_BYTES];
    struct peer_request request;
    int error = peer_look(outgoing->peer, message);
    if (error != 0) {
        return error;
    }
    if (!request_unpack(message, pager->pages, &request)) {
        return EPROTO;
    }
    outgoing->heard_ns = wire_now_ns();
    struct peer_answer made = carry_out(outgoing, pager, &request);
    uint64_t ends_ns = wire_deadline(outgoing->deadline_ms);
    answer_pack(&made, message);
    CRASH_POINT("answering");
    error = peer_send(outgoing->peer, message, sizeof message, ends_ns);
    if (error == 0 && made.bytes > 0) {
        error = peer_send(outgoing->peer, pager->buffer, made.bytes, ends_ns);
    }
    if (request.verb == PEER_KEYS) {
        OPENSSL_cleanse(pager->buffer, sizeof(struct peer_keys));
    }
    outgoing->bytes += error == 0 ? sizeof message + made.bytes : 0;
    if (error == 0 && request.verb == PEER_DONE && made.status == PEER_OK) {
        outgoing_change(outgoing, OUT_SWITCHED, OUT_DELIVERED);
    }
    return error;
}

/* The destination was silent for too long. Before the switch, which the end of its process is, too, this host has the
 * guest back. */
static void give_up(struct outgoing *outgoing)
{
    uint64_t silent_ns = wire_now_ns() - outgoing->heard_ns;
    if (silent_ns / NS_PER_MS > outgoing->deadline_ms && state_of(outgoing) != OUT_OFFERED) {
        const struct target *target = &outgoing->pager->target;
        hang_up(outgoing);
        if (target_lives(target->pid, target->started)) {
            outgoing_change(outgoing, OUT_FROZEN, OUT_WITHDRAWN);
        }
    }
}

/* Nobody here waits any longer, and the destination gets nothing. */
static int go_back(struct outgoing *outgoing, struct pager *pager)
{
    hang_up(outgoing);
    atomic_store(&pager->store->state->header->phase, PHASE_ATTACHED); /* a next process has it go on, too */
    if (pager->frozen && !pager_freeze(pager, false)) {
        return RETRY_MS;
    }
    outgoing->protects = false;
    atomic_store(&outgoing->chore.outlives, false);
    outgoing_change(outgoing, OUT_WITHDRAWN, OUT_BACK);
    return -1;
}

static int outgoing_turn(struct chore *chore, struct pager *pager)
{
    struct outgoing *outgoing = (struct outgoing *)chore;
    enum outgoing_state state = state_of(outgoing);
    if (state == OUT_NONE || state == OUT_BACK) {
        return -1;
    }
    if (state == OUT_WITHDRAWN) {
        return go_back(outgoing, pager);
    }
    if (state == OUT_DELIVERED) {
        hang_up(outgoing);
        pager->chore_end = ENDED_HANDED_OVER;
        return 0;
    }
    if (serves(state) && !outgoing->protects) { /* a former process was killed */
        outgoing->protects = pager_freeze(pager, true);
    }
    welcome(outgoing);
    if (outgoing->peer != NULL) {
        int error = answer(outgoing, pager);
        if (error == 0) {
            return 0;
        }
        if (error != EAGAIN) {
            hang_up(outgoing);
        }
    }
    give_up(outgoing);
    return state_of(outgoing) == OUT_OFFERED ? -1 : state_of(outgoing) == state ? LOOK_MS : 0;
}

void outgoing_begin(struct outgoing *outgoing, struct pager *pager)
{
    *outgoing = (struct outgoing){
        .chore = {.turn = outgoing_turn, .fd = -1}, .door = {.listener = -1, .stop_fd = -1}, .pager = pager};
}

static void tell(void *pager)
{
    pager_tell(pager);
}

int outgoing_open(struct outgoing *outgoing, const char *host, int port, const uint8_t key[KEY_BYTES],
                  const char *guest, uint64_t session, uint32_t deadline_ms, struct problem *problem)
{
    struct door *door = &outgoing->door;
    memcpy(door->key, key, KEY_BYTES);
    memcpy(door->guest, guest, UUID_BYTES);
    door->tell = tell;
    door->whom = outgoing->pager;
    outgoing->session = session;
    outgoing->deadline_ms = deadline_ms;
    outgoing->heard_ns = wire_now_ns();
    outgoing->resident_pages = outgoing->stored_pages = outgoing->bytes = 0;
    outgoing->lent_pages = outgoing->told_pages = 0;
    snprintf(outgoing->host, sizeof outgoing->host, "%s", host);
    return door_open(door, host, port, problem);
}

void outgoing_resume(struct outgoing *outgoing, enum outgoing_state state)
{
    outgoing->pager->frozen = true;
    outgoing->protects = state == OUT_SWITCHED;
    atomic_store(&outgoing->chore.outlives, true);
    atomic_store(&outgoing->state, (int)state);
}

void outgoing_offer(struct outgoing *outgoing)
{
    atomic_store(&outgoing->chore.outlives, true);
    atomic_store(&outgoing->state, OUT_OFFERED);
    pager_tell(outgoing->pager);
}

void outgoing_close(struct outgoing *outgoing)
{
    door_close(&outgoing->door);
}

void outgoing_tidy(struct outgoing *outgoing)
{
    if (state_of(outgoing) == OUT_BACK) {
        door_close(&outgoing->door);
        atomic_store(&outgoing->state, OUT_NONE);
    }
}

void outgoing_end(struct outgoing *outgoing)
{
    if (outgoing->chore.turn != NULL) {
        door_close(&outgoing->door);
        hang_up(outgoing);
        atomic_store(&outgoing->state, OUT_NONE);
    }
}
