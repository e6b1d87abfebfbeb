#include "incoming.h"

#include "former_mirror.h"

#include "../links/wire.h"
#include "../pager/crash_point.h"
#include "../pager/eviction.h"
#include "../pager/faults.h"
#include "../pager/residency.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { RUN_PAGES = 32, PAUSE_MS = 200, CONNECT_MS = 500, FILL_MS = 1 };
static const uint64_t NS_PER_MS = 1000000;

static uint64_t place_of(const struct incoming *incoming, uint32_t page)
{
    return atomic_load_explicit(&incoming->state->rows[page].place, memory_order_relaxed);
}

static void set_place(struct incoming *incoming, uint32_t page, uint64_t place)
{
    atomic_store_explicit(&incoming->state->rows[page].place, place, memory_order_release);
}

static void set_phase(struct incoming *incoming, enum incoming_state phase)
{
    atomic_store(&incoming->phase, (int)phase);
}

static void hang_up(struct incoming *incoming, int error)
{
    peer_end(&incoming->peer);
    incoming->chore.fd = -1;
    incoming->next_ns = wire_now_ns() + CONNECT_MS * NS_PER_MS;
    atomic_store(&incoming->connected, false);
    atomic_store(&incoming->error, error);
}

int incoming_ask(struct incoming *incoming, struct peer_request request, struct peer_answer *answer, void *payload)
{
    int error =
        peer_ask(&incoming->peer, &request, answer, payload, wire_deadline(incoming->from.deadline_ms));
    if (error != 0) {
        hang_up(incoming, error);
        return error;
    }
    incoming->heard_ns = wire_now_ns();
    incoming->bytes += MESSAGE_BYTES + answer->bytes;
    error = answer->status == PEER_OK ? 0 : answer->status == PEER_NOT_YET ? EAGAIN : ECANCELED;
    atomic_store(&incoming->error, error == EAGAIN ? 0 : error);
    return error;
}

/* Be sure that this is the hand-over that was begun, and not a later one of the same guest. */
static int join(struct incoming *incoming)
{
    struct peer_answer answer;
    struct state_header *header = incoming->state->header;
    uint64_t session = 0;
    int error = incoming_ask(incoming, (struct peer_request){PEER_JOIN, 0, (uint32_t)header->pages}, &answer, &session);
    if (error != 0 || (header->session != 0 && header->session != session)) {
        hang_up(incoming, error != 0 ? error : ECANCELED);
        return error != 0 ? error : ECANCELED;
    }
    header->session = session;
    return 0;
}

static int connect_to_source(struct incoming *incoming)
{
    const struct origin_address *from = &incoming->from;
    if (incoming->peer.fd >= 0) {
        return 0;
    }
    if (wire_now_ns() < incoming->next_ns) {
        return ENOTCONN;
    }
    uint64_t ends_ns = wire_deadline(GREETING_MS + CONNECT_MS);
    int fd = wire_socket(from->host), error = fd < 0 ? errno : wire_connect(fd, from->host, from->port, ends_ns);
    if (error != 0 && fd >= 0) {
        close(fd);
    }
    const struct state_header *header = incoming->state->header;
    error = error != 0 ? error : peer_begin(&incoming->peer, fd, header->session_key, header->guest, true, ends_ns);
    if (error != 0) {
        hang_up(incoming, error);
        return error;
    }
    incoming->chore.fd = incoming->peer.fd;
    error = join(incoming);
    atomic_store(&incoming->connected, error == 0);
    return error;
}

static void note_kind(struct incoming *incoming, uint32_t page, uint8_t kind)
{
    if (place_of(incoming, page) != AT_SOURCE) {
        return; /* known before this process began */
    }
    if (kind == KIND_UNTOUCHED && !is_resident(incoming->pager, page)) {
        residency_dropped(incoming->pager);
    }
    static const uint64_t places[KINDS] = {NOT_STORED, RESIDENT_AT_SOURCE, STORED_AT_SOURCE, LENT_AT_SOURCE};
    set_place(incoming, page, kind == KIND_LENT && !incoming->refers ? STORED_AT_SOURCE : places[kind]);
}

/* Have maps tell of lenders, where both sides can do it. */
static int begin_to_refer(struct incoming *incoming)
{
    struct peer_answer answer;
    struct peer_keys keys;
    uint32_t fresh = atomic_load(&incoming->state->header->adopted) == 0;
    if (!incoming->from.references) {
        return 0;
    }
    int error = incoming_ask(incoming, (struct peer_request){PEER_KEYS, fresh, 0}, &answer, &keys);
    bool good = error == 0 && keys.sealed == incoming->state->header->sealed && keys.tenure <= MOST_TENURE;
    CRASH_POINT("adopting");
    incoming->refers = good && store_adopt(incoming->pager->store, keys.key, keys.tenure);
    OPENSSL_cleanse(&keys, sizeof keys);
    if (error == ECANCELED) { /* it gives none; where it has taken the guest back, it refuses the map as well */
        atomic_store(&incoming->error, 0);
        return 0;
    }
    return error;
}

static int fetch_map(struct incoming *incoming)
{
    uint8_t *kinds = incoming->pager->buffer;
    uint32_t pages = incoming->pager->pages, count;
    for (uint32_t first = 0; first < pages; first += count) {
        struct peer_answer answer;
        count = pages - first < MOST_MAPPED ? pages - first : MOST_MAPPED;
        int error = incoming_ask(incoming, (struct peer_request){PEER_MAP, first, count}, &answer, kinds);
        for (uint32_t at = 0; error == 0 && at < count; at++) {
            error = kinds[at] < KINDS ? 0 : EPROTO;
        }
        if (error != 0) {
            return error;
        }
        for (uint32_t at = 0; at < count; at++) {
            note_kind(incoming, first + at, kinds[at]);
        }
        CRASH_POINT("mapped");
    }
    incoming->mapped = true;
    return 0;
}

/* Have the source be frozen, and its map here. */
static int ready(struct incoming *incoming)
{
    struct peer_answer answer;
    int error = connect_to_source(incoming);
    if (error != 0 || incoming->mapped) {
        return error;
    }
    error = incoming_ask(incoming, (struct peer_request){.verb = PEER_FREEZE}, &answer, NULL);
    if (error == 0) {
        atomic_store(&incoming->state->header->phase, PHASE_TAKING);
        set_phase(incoming, IN_TAKING);
        CRASH_POINT("taking");
        error = begin_to_refer(incoming);
        error = error != 0 ? error : fetch_map(incoming);
    }
    return error;
}

static void count_copied(struct incoming *incoming, uint32_t first, uint32_t count)
{
    struct page_store *store = incoming->pager->store;
    for (uint32_t at = 0; at < count; at++) {
        bool resident = place_of(incoming, first + at) == RESIDENT_AT_SOURCE;
        store->copied_resident += resident;
        store->copied_stored += !resident;
        store->handed_copied += place_of(incoming, first + at) == LENT_AT_SOURCE; /* nobody could say where it is */
    }
    incoming->pages += count;
}

/* A page_source's: pages that the source has, up to STORE_MOST_PAGES, adjacent ones. */
static int fetch(struct page_source *source, uint64_t first, uint32_t count, uint8_t *into)
{
    struct incoming *incoming = (struct incoming *)((char *)source - offsetof(struct incoming, source));
    atomic_store(&incoming->wanted, true); /* whoever asks runs after the source's guest has stopped */
    int error = ready(incoming);
    for (uint32_t done = 0; error == 0 && done < count;) {
        struct peer_answer answer = {0};
        error = incoming_ask(incoming, (struct peer_request){PEER_GET, (uint32_t)first + done, count - done}, &answer,
                    into + (size_t)done * PAGE_BYTES);
        count_copied(incoming, (uint32_t)first + done, error == 0 ? answer.count : 0);
        done += error == 0 ? answer.count : 0;
    }
    return error;
}

/* A page_source's: learn with which lenders a page and its neighbours are. */
static int refer(struct page_source *source, uint64_t page)
{
    struct incoming *incoming = (struct incoming *)((char *)source - offsetof(struct incoming, source));
    struct peer_answer answer;
    uint32_t pages = incoming->pager->pages, first = (uint32_t)page / MOST_ROWS * MOST_ROWS, slot;
    uint32_t count = pages - first < MOST_ROWS ? pages - first : MOST_ROWS;
    atomic_store(&incoming->wanted, true);
    int error = ready(incoming);
    if (error == 0 && place_of(incoming, (uint32_t)page) != LENT_AT_SOURCE) {
        return 0;
    }
    error = error != 0 ? error
                       : incoming_ask(incoming, (struct peer_request){PEER_ROWS, first, count}, &answer, incoming->rows);
    for (uint32_t at = 0; error == 0 && at < count; at++) {
        const struct peer_row *row = &incoming->rows[at];
        struct page_store *store = incoming->pager->store;
        if (place_of(incoming, first + at) == LENT_AT_SOURCE && !is_resident(incoming->pager, first + at) &&
            leases_where(&store->leases, first + at, &slot) == NULL) {
            uint32_t told = row->slot < MOST_LEASE_SLOTS ? (uint32_t)row->slot : MOST_LEASE_SLOTS;
            (void)store_refer(store, first + at, row->buffer, told, row->version, row->tag);
        }
    }
    CRASH_POINT("referred");
    return error;
}

/* Find the next run of pages that are at the source in one way, from the cursor on. */
static uint32_t next_run(const struct incoming *incoming, uint64_t place, uint32_t *cursor)
{
    const struct pager *pager = incoming->pager;
    uint32_t count = 0;
    while (*cursor < pager->pages && (place_of(incoming, *cursor) != place || is_resident(pager, *cursor))) {
        ++*cursor;
    }
    while (count < RUN_PAGES && *cursor + count < pager->pages && place_of(incoming, *cursor + count) == place &&
           !is_resident(pager, *cursor + count)) {
        count++;
    }
    return count;
}

/* Whether local memory has room for a run, with some left for faults. */
static bool has_room(const struct pager *pager)
{
    uint32_t limit = atomic_load(&pager->limit_pages), resident = atomic_load(&pager->resident_pages);
    return eviction_due(pager) == 0 && (uint64_t)resident + 2 * RUN_PAGES <= limit;
}

/* Take one run of pages in: to local memory as far as there is room, else to the store. -1: there is none any more;
 * else milliseconds until the next one. */
static int take_run(struct incoming *incoming)
{
    struct pager *pager = incoming->pager;
    static const uint64_t order[TAKEN_KINDS] = {RESIDENT_AT_SOURCE, STORED_AT_SOURCE, LENT_AT_SOURCE};
    for (int at = 0; at < TAKEN_KINDS; at++) {
        uint32_t count = next_run(incoming, order[at], &incoming->cursors[at]), first = incoming->cursors[at];
        if (count == 0) {
            continue;
        }
        if (order[at] == LENT_AT_SOURCE) {
            int error = former_mirror_take(incoming, first, count);
            CRASH_POINT("mirrored");
            return error == 0 && incoming->peer.fd >= 0 ? FILL_MS : PAUSE_MS;
        }
        if (order[at] == RESIDENT_AT_SOURCE && has_room(pager)) {
            return take_home(pager, first, count) > 0 ? 0 : PAUSE_MS;
        }
        if (store_read(pager->store, first, count, pager->buffer) != 0) {
            return PAUSE_MS;
        }
        CRASH_POINT("fetched");
        return store_take_in(pager->store, first, count, pager->buffer) == 0 ? 0 : PAUSE_MS;
    }
    memset(incoming->cursors, 0, sizeof incoming->cursors);
    return -1;
}

/* Have no row say that the source has a page. False: one is missing after all. */
static bool settle_rows(struct incoming *incoming)
{
    for (uint32_t page = 0; page < incoming->pager->pages; page++) {
        if (place_of(incoming, page) >= AT_SOURCE) {
            if (!is_resident(incoming->pager, page)) {
                return false;
            }
            set_place(incoming, page, NOT_STORED); /* what is present is the truth */
        }
    }
    return true;
}

static int taking_turn(struct incoming *incoming)
{
    int pause = ready(incoming) == 0 ? take_run(incoming) : PAUSE_MS;
    if (pause >= 0 || !settle_rows(incoming)) {
        return pause >= 0 ? pause : 0;
    }
    CRASH_POINT("complete");
    atomic_store(&incoming->state->header->phase, PHASE_ATTACHED);
    set_phase(incoming, IN_COMPLETE);
    incoming->heard_ns = wire_now_ns();
    return 0;
}

/* Tell the source that it is not needed, until it hears that the guest is ours. Where it is silent for the deadline, it
 * needs nobody either: it has forgotten, or is told by its agent to forget. */
static int complete_turn(struct incoming *incoming)
{
    struct peer_answer answer;
    int error = connect_to_source(incoming);
    error = error != 0 ? error : incoming_ask(incoming, (struct peer_request){.verb = PEER_DONE}, &answer, NULL);
    uint64_t silent_ns = wire_now_ns() - incoming->heard_ns;
    if (error != 0 && silent_ns / NS_PER_MS <= incoming->from.deadline_ms) {
        return PAUSE_MS;
    }
    CRASH_POINT("told");
    if (error == 0) {
        leases_take_over(&incoming->pager->store->leases);
    } else { /* nobody says that the source will not write there, or with this key */
        atomic_store(&incoming->state->header->alone, incoming->state->header->adopted);
    }
    hang_up(incoming, error);
    set_phase(incoming, IN_OVER);
    return -1;
}

/* While nobody has asked for anything: be connected, so that what hinders is known before a migration begins. */
static int waiting_turn(struct incoming *incoming)
{
    uint8_t nothing[MESSAGE_BYTES];
    if (incoming->peer.fd >= 0 && peer_look(&incoming->peer, nothing) != EAGAIN) {
        hang_up(incoming, ECONNRESET);
    }
    return connect_to_source(incoming) == 0 ? -1 : PAUSE_MS;
}

static int incoming_turn(struct chore *chore, struct pager *pager)
{
    struct incoming *incoming = (struct incoming *)chore;
    (void)pager;
    switch ((enum incoming_state)atomic_load(&incoming->phase)) {
    case IN_WAITING:
        return atomic_load(&incoming->wanted) ? taking_turn(incoming) : waiting_turn(incoming);
    case IN_TAKING:
        return taking_turn(incoming);
    case IN_COMPLETE:
        return complete_turn(incoming);
    default:
        return -1;
    }
}

void incoming_begin(struct incoming *incoming, struct pager *pager, struct shared_state *state,
                    const struct origin_address *from)
{
    uint32_t phase = atomic_load(&state->header->phase);
    *incoming = (struct incoming){
        .chore = {.turn = incoming_turn, .fd = -1},
        .source = {.fetch = fetch, .refer = refer},
        .pager = pager,
        .state = state,
        .from = *from,
        .peer = {.fd = -1},
        .wanted = phase == PHASE_TAKING,
        .phase = phase == PHASE_ATTACHED ? IN_COMPLETE : phase == PHASE_TAKING ? IN_TAKING : IN_WAITING,
        .heard_ns = wire_now_ns(),
    };
    pager->store->source = &incoming->source;
    pager_set_chore(pager, &incoming->chore);
}

void incoming_clear(struct shared_state *state)
{
    for (uint64_t page = 0; page < state->header->pages; page++) {
        atomic_store_explicit(&state->rows[page].place, AT_SOURCE, memory_order_relaxed);
    }
}

void incoming_take(struct incoming *incoming)
{
    atomic_store(&incoming->wanted, true);
    pager_tell(incoming->pager);
}

void incoming_end(struct incoming *incoming)
{
    if (incoming->chore.turn != NULL) {
        peer_end(&incoming->peer);
        former_mirror_end(incoming);
        set_phase(incoming, IN_NONE);
    }
}
