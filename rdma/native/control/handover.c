#define _GNU_SOURCE
#include "handover.h"

#include "lenders.h"
#include "record.h"
#include "remains.h"

#include "../pager/crash_point.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { LEAST_DEADLINE = 1000, MOST_DEADLINE = 600000, DEFAULT_DEADLINE = 30000, MOST_PORT = 65535 };

static int hex_digit(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = digit == '\0' ? NULL : strchr(digits, digit);
    return at == NULL ? -1 : (int)(at - digits);
}

static bool parse_key(const char *text, struct session_key *key)
{
    bool good = strlen(text) == 2 * KEY_BYTES;
    for (size_t at = 0; good && at < KEY_BYTES; at++) {
        int high = hex_digit(text[2 * at]), low = hex_digit(text[2 * at + 1]);
        good = high >= 0 && low >= 0;
        key->bytes[at] = good ? (uint8_t)(high << 4 | low) : 0;
    }
    key->known = good;
    return good;
}

int origin_from_json(struct origin_address *from, struct session_key *key, json_t *object, struct problem *problem)
{
    const char *host, *text = NULL, *mirror = "";
    json_int_t port = 0, deadline_ms = DEFAULT_DEADLINE;
    int references = 0;
    json_error_t error;
    *key = (struct session_key){0};
    if (json_unpack_ex(object, &error, JSON_STRICT, "{s:s, s?I, s?s, s?I, s?b, s?s}", "host", &host, "port", &port, "key", &text,
                       "deadline_ms", &deadline_ms, "references", &references, "mirror", &mirror) != 0) {
        return problem_set(problem, "%s", error.text);
    }
    if (strlen(host) >= sizeof from->host || port < 0 || port > MOST_PORT) {
        return problem_set(problem, "host: a numeric address is needed; port: 0 to %d", MOST_PORT);
    }
    if (strlen(mirror) >= sizeof from->mirror || (mirror[0] != '\0' && mirror[0] != '/')) {
        return problem_set(problem, "mirror: an absolute path of the source's mirror is needed");
    }
    if (deadline_ms < LEAST_DEADLINE || deadline_ms > MOST_DEADLINE) {
        return problem_set(problem, "deadline_ms: %d to %d, not %lld", LEAST_DEADLINE, MOST_DEADLINE,
                           (long long)deadline_ms);
    }
    if (text != NULL && !parse_key(text, key)) {
        return problem_set(problem, "key: %d hexadecimal digits in lower case are needed", 2 * KEY_BYTES);
    }
    snprintf(from->host, sizeof from->host, "%s", host);
    from->port = (int)port;
    from->deadline_ms = (uint32_t)deadline_ms;
    from->references = references != 0;
    snprintf(from->mirror, sizeof from->mirror, "%s", mirror);
    return 0;
}

json_t *origin_to_json(const struct origin_address *from)
{
    json_t *object = json_pack("{s:s, s:i, s:i, s:b}", "host", from->host, "port", from->port, "deadline_ms",
                               (int)from->deadline_ms, "references", (int)from->references);
    if (from->mirror[0] != '\0') { /* else a release before can go on with the guest */
        json_object_set_new(object, "mirror", json_string(from->mirror));
    }
    return object;
}

static enum outgoing_state state_of(const struct guest *guest)
{
    return guest->serves ? (enum outgoing_state)atomic_load(&guest->outgoing.state) : OUT_NONE;
}

static json_t *outgoing_to_json(const struct outgoing *outgoing)
{
    static const char *const names[] = {"none",     "offered",   "frozen", "switching",
                                        "switched", "withdrawn", "back",   "delivered"};
    /* `kept`: since the offer; a former release kept nothing before the switch. `references`: it tells where pages are.
     * `publishes`: it has other hosts see its mirror. */
    return json_pack("{s:s, s:b, s:b, s:b, s:i, s:I, s:I, s:b, s:I, s:I, s:I}", "state", names[atomic_load(&outgoing->state)],
                     "kept", 1, "references", 1, "publishes", 1, "port", door_port(&outgoing->door), "lent_pages",
                     (json_int_t)atomic_load(&outgoing->lent_pages), "told_pages",
                     (json_int_t)atomic_load(&outgoing->told_pages), "connected", (int)atomic_load(&outgoing->connected), "resident_pages",
                     (json_int_t)atomic_load(&outgoing->resident_pages), "stored_pages",
                     (json_int_t)atomic_load(&outgoing->stored_pages), "bytes",
                     (json_int_t)atomic_load(&outgoing->bytes));
}

static json_t *incoming_to_json(const struct incoming *incoming)
{
    static const char *const names[] = {"none", "waiting", "taking", "complete", "over"};
    int error = atomic_load(&incoming->error);
    const char *problem = error == 0           ? ""
                          : error == ECANCELED ? "the source has taken the guest back, or offers it anew"
                          : error == EBADMSG   ? "the source has another key"
                                               : strerror(error);
    return json_pack("{s:s, s:b, s:I, s:I, s:s}", "state", names[atomic_load(&incoming->phase)], "connected",
                     (int)atomic_load(&incoming->connected), "pages", (json_int_t)atomic_load(&incoming->pages),
                     "bytes", (json_int_t)atomic_load(&incoming->bytes), "problem", problem);
}

json_t *handover_to_json(const struct guest *guest)
{
    if (guest->serves && guest->settings.incoming) {
        return incoming_to_json(&guest->incoming);
    }
    return state_of(guest) == OUT_NONE ? NULL : outgoing_to_json(&guest->outgoing);
}

bool handover_runs(const struct guest *guest)
{
    return guest->settings.incoming || state_of(guest) != OUT_NONE;
}

/* The destination has all, and the source knows it: this is a guest as any other one. */
static void finish_incoming(struct guests *guests, struct guest *guest)
{
    struct guest_settings wanted = guest->settings;
    wanted.incoming = false;
    if (record_write(guests->folder, &wanted, &guest->problem) == 0) {
        guest->settings = wanted;
        pager_set_chore(&guest->pager, &guest->outgoing.chore);
        incoming_end(&guest->incoming);
        OPENSSL_cleanse(guest->state.header->session_key, KEY_BYTES);
        lenders_leave_handed(guest->lenders); /* they came too late, or the source did not say that it has let go */
        pager_sweep(&guest->pager);
    }
}

/* The guest's process has ended while it was offered: it can go on at the destination only. Where that has ended, too,
 * an order says so (`forget`). */
static void switch_remains(struct guests *guests, struct guest *guest)
{
    struct outgoing *outgoing = &guest->outgoing;
    enum outgoing_state before = state_of(guest);
    if (guest->serves && ((before != OUT_OFFERED && before != OUT_FROZEN) ||
                          !outgoing_change(outgoing, before, OUT_SWITCHING))) {
        return; /* it was withdrawn: with its process the guest has ended */
    }
    int result = remains_switch(guest, guests->folder, &guest->problem);
    if (guest->serves && result == 0) {
        atomic_store(&guest->state.header->phase, PHASE_SWITCHED);
    }
    if (guest->serves) {
        outgoing_change(outgoing, OUT_SWITCHING, result == 0 ? OUT_SWITCHED : before);
    }
}

void handover_look(struct guests *guests, struct guest *guest)
{
    const struct guest_settings *settings = &guest->settings;
    if (settings->offered && !target_lives(settings->pid, settings->started)) {
        switch_remains(guests, guest);
    }
    if (!guest->serves) {
        return;
    }
    if (settings->incoming && atomic_load(&guest->incoming.phase) == IN_OVER) {
        finish_incoming(guests, guest);
    }
    if (state_of(guest) == OUT_BACK) {
        remains_let_go(guest, guests->folder);
        OPENSSL_cleanse(guest->state.header->session_key, KEY_BYTES);
    }
    outgoing_tidy(&guest->outgoing);
}

/* The key is in the shared state, so that it outlives this process with the guest, and is on no disk. */
static int offer(struct guests *guests, struct guest *guest, const struct origin_address *at,
                 const struct session_key *key, struct problem *problem)
{
    struct outgoing *outgoing = &guest->outgoing;
    struct state_header *header = guest->state.header;
    do {
        if (getrandom(&header->session, sizeof header->session, 0) != sizeof header->session) {
            return problem_set(problem, "the kernel gives no random number: %s", strerror(errno));
        }
    } while (header->session == 0);
    memcpy(header->session_key, key->bytes, KEY_BYTES);
    if (outgoing_open(outgoing, at->host, at->port, key->bytes, guest->settings.guest, header->session,
                      at->deadline_ms, problem) != 0) {
        return -1;
    }
    if (remains_keep(guest, guests->folder, problem) != 0) {
        outgoing_close(outgoing);
        return -1;
    }
    outgoing_offer(outgoing);
    return 0;
}

int handover_offer(struct guests *guests, struct guest *guest, json_t *request, struct problem *problem)
{
    struct origin_address at;
    struct session_key key;
    int result = origin_from_json(&at, &key, request, problem);
    if (result == 0 && !key.known) {
        result = problem_set(problem, "key: %d hexadecimal digits are needed", 2 * KEY_BYTES);
    }
    if (result == 0 && (!guest->serves || guest->settings.detaching || guest->settings.incoming)) {
        result = problem_set(problem, "guest %s is not served, detaches, or is still on its way to this host",
                             guest->settings.guest);
    }
    if (result == 0 && state_of(guest) != OUT_NONE) {
        bool same = memcmp(guest->state.header->session_key, key.bytes, KEY_BYTES) == 0 &&
                    state_of(guest) != OUT_WITHDRAWN && state_of(guest) != OUT_BACK;
        result = same ? 0 : problem_set(problem, "guest %s is being handed over already", guest->settings.guest);
    } else if (result == 0) {
        result = offer(guests, guest, &at, &key, problem);
    }
    OPENSSL_cleanse(&key, sizeof key);
    return result;
}

int handover_take(struct guest *guest, struct problem *problem)
{
    if (!guest->serves || !guest->settings.incoming) {
        return problem_set(problem, "guest %s does not come from another data plane", guest->settings.guest);
    }
    incoming_take(&guest->incoming);
    return 0;
}

int handover_switch(struct guests *guests, struct guest *guest, struct problem *problem)
{
    struct outgoing *outgoing = &guest->outgoing;
    if (state_of(guest) == OUT_SWITCHED || state_of(guest) == OUT_DELIVERED) {
        return 0;
    }
    if (!outgoing_change(outgoing, OUT_FROZEN, OUT_SWITCHING)) {
        return problem_set(problem,
                           "guest %s is not frozen: its destination has not asked for it, or was silent for too long; "
                           "order take_over there, or begin anew",
                           guest->settings.guest);
    }
    if (remains_switch(guest, guests->folder, problem) != 0) {
        outgoing_change(outgoing, OUT_SWITCHING, OUT_FROZEN);
        return -1;
    }
    atomic_store(&guest->state.header->phase, PHASE_SWITCHED);
    outgoing_change(outgoing, OUT_SWITCHING, OUT_SWITCHED);
    return 0;
}

int handover_withdraw(struct guest *guest, struct problem *problem)
{
    struct outgoing *outgoing = &guest->outgoing;
    bool ended = guest->settings.offered && !target_lives(guest->settings.pid, guest->settings.started);
    if (ended || state_of(guest) == OUT_SWITCHED || state_of(guest) == OUT_DELIVERED) {
        return problem_set(problem, "guest %s is its destination's since the switch; once that is lost, see forget",
                           guest->settings.guest);
    }
    if (outgoing_change(outgoing, OUT_OFFERED, OUT_WITHDRAWN) || outgoing_change(outgoing, OUT_FROZEN, OUT_WITHDRAWN)) {
        pager_tell(&guest->pager);
    }
    return 0;
}

int handover_forget(struct guest *guest, struct problem *problem)
{
    if (state_of(guest) != OUT_SWITCHED && state_of(guest) != OUT_DELIVERED) {
        return problem_set(problem, "guest %s was not switched to another data plane", guest->settings.guest);
    }
    outgoing_change(&guest->outgoing, OUT_SWITCHED, OUT_DELIVERED);
    pager_tell(&guest->pager);
    return 0;
}
