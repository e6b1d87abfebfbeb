/* What the two data planes of a hand-over may say to each other: handover/protocol.c takes anything, handover/peer.c only
 * what somebody with the key has said last. `handover_checks SEED STEPS`. */
#define _GNU_SOURCE
#include "../../native/handover/peer.h"
#include "../../native/links/wire.h"
#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAGES = 1000, GREETING_MS = 60000 };
static const char GUEST[UUID_BYTES] = "6f1c2d1e-0000-4000-8000-000000000001";
static const char OTHER[UUID_BYTES] = "6f1c2d1e-0000-4000-8000-000000000002";
static const uint8_t KEY[KEY_BYTES] = {1}, WRONG_KEY[KEY_BYTES] = {2};

static uint64_t dice;

static uint64_t roll(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    return dice ^= dice << 17;
}

/* Any message, and many that are nearly one. */
static void fill(uint8_t message[MESSAGE_BYTES])
{
    for (int at = 0; at < MESSAGE_BYTES; at++) {
        message[at] = (uint8_t)(at % 4 >= 2 && roll() % 8 > 0 ? 0 : roll());
    }
    message[0] = roll() % 4 == 0 ? message[0] : (uint8_t)(roll() % 10);
    message[1] = roll() % 4 == 0 ? message[1] : 0;
    message[5] &= roll() % 4 == 0 ? 255 : 3;
    message[9] &= roll() % 4 == 0 ? 255 : 1;
    message[4] = roll() % 4 == 0 ? 0 : message[4];
    memset(message + 12, 0, roll() % 4 == 0 ? 0 : 4);
}

/* Whatever comes: what is taken is within bounds. */
static void check_protocol(uint64_t steps)
{
    uint64_t requests = 0, answers = 0;
    for (uint64_t step = 0; step < steps; step++) {
        uint8_t message[MESSAGE_BYTES], packed[MESSAGE_BYTES];
        struct peer_request request;
        struct peer_answer answer;
        fill(message);
        if (request_unpack(message, PAGES, &request)) {
            requests++;
            request_pack(&request, packed);
            CHECK(memcmp(message, packed, sizeof packed) == 0);
            CHECK(request.verb == PEER_JOIN || request.verb == PEER_KEYS || (uint64_t)request.first + request.count <= PAGES);
            CHECK((request.verb != PEER_GET && request.verb != PEER_MIRROR) || (request.count >= 1 && request.count <= STORE_MOST_PAGES));
        }
        struct peer_request asked = {(uint32_t)(PEER_JOIN + roll() % PEER_MIRROR), 0, (uint32_t)(1 + roll() % STORE_MOST_PAGES)};
        if (roll() % 2 == 0) {
            answer_pack(&(struct peer_answer){PEER_OK, asked.count, asked.count * PAGE_BYTES}, message);
        }
        if (answer_unpack(message, &asked, &answer)) {
            answers++;
            CHECK(answer.bytes <= MOST_PAYLOAD && answer.count <= asked.count);
            CHECK(answer.status == PEER_OK || answer.bytes == 0);
            CHECK(asked.verb != PEER_GET || answer.bytes == answer.count * PAGE_BYTES);
            CHECK(answer.status != PEER_OK || asked.verb != PEER_KEYS || answer.bytes == sizeof(struct peer_keys));
            CHECK(asked.verb != PEER_ROWS || answer.bytes == answer.count * sizeof(struct peer_row));
        }
    }
    CHECK(steps < 1000 || (requests > 0 && answers > 0));
}

struct side {
    struct peer peer;
    int fd, error;
    const uint8_t *key;
    const char *guest;
};

static void *accept_side(void *context)
{
    struct side *side = context;
    side->error = peer_begin(&side->peer, side->fd, side->key, side->guest, false, wire_deadline(GREETING_MS));
    return NULL;
}

/* Have two sides greet each other; whether both take the other one. */
static bool greet(struct side *accepts, struct side *connects)
{
    int ends[2];
    pthread_t thread;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    accepts->fd = ends[0];
    CHECK(pthread_create(&thread, NULL, accept_side, accepts) == 0);
    connects->error =
        peer_begin(&connects->peer, ends[1], connects->key, connects->guest, true, wire_deadline(GREETING_MS));
    pthread_join(thread, NULL);
    return accepts->error == 0 && connects->error == 0;
}

static void check_keys(void)
{
    struct side accepts = {.key = KEY, .guest = GUEST}, connects = {.key = WRONG_KEY, .guest = GUEST};
    CHECK(!greet(&accepts, &connects) && accepts.error == EBADMSG && connects.error == ECONNRESET);
    connects.key = KEY;
    connects.guest = OTHER;
    CHECK(!greet(&accepts, &connects) && accepts.error == EBADMSG);
    connects.guest = GUEST;
    CHECK(greet(&accepts, &connects));
    peer_end(&accepts.peer);
    peer_end(&connects.peer);
    peer_end(&connects.peer);
}

/* A message that was changed, or comes again, does not open; one in parts is waited for. */
static void check_messages(void)
{
    static uint8_t payload[MOST_PAYLOAD], got[MOST_PAYLOAD];
    struct side accepts = {.key = KEY, .guest = GUEST}, connects = {.key = KEY, .guest = GUEST};
    uint8_t message[MESSAGE_BYTES] = "message", taken[MESSAGE_BYTES], wire[WIRE_BYTES];
    uint64_t ends_ns = wire_deadline(GREETING_MS);
    CHECK(greet(&accepts, &connects));
    struct peer *to = &accepts.peer, *from = &connects.peer;
    CHECK(peer_look(to, taken) == EAGAIN);
    CHECK(peer_send(from, message, sizeof message, ends_ns) == 0);
    CHECK(peer_look(to, taken) == 0 && memcmp(taken, message, sizeof message) == 0);
    memset(payload, 7, sizeof payload);
    CHECK(peer_send(from, payload, 5000, ends_ns) == 0 && peer_receive(to, got, 5000, ends_ns) == 0);
    CHECK(memcmp(got, payload, 5000) == 0 && got[5000] == 0);
    CHECK(peer_send(from, payload, MOST_PAYLOAD + 1, ends_ns) == EIO);
    CHECK(peer_send(from, message, sizeof message, ends_ns) == 0);
    CHECK(recv(to->fd, wire, sizeof wire, 0) == sizeof wire);
    CHECK(send(from->fd, wire, 10, 0) == 10 && peer_look(to, taken) == EAGAIN);
    CHECK(send(from->fd, wire + 10, sizeof wire - 10, 0) == sizeof wire - 10 && peer_look(to, taken) == 0);
    CHECK(send(from->fd, wire, sizeof wire, 0) == sizeof wire && peer_look(to, taken) == EBADMSG);
    wire[3] ^= 1;
    to->received--;
    CHECK(send(from->fd, wire, sizeof wire, 0) == sizeof wire && peer_look(to, taken) == EBADMSG);
    peer_end(from);
    CHECK(peer_look(to, taken) == ECONNRESET);
    peer_end(to);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    dice = strtoull(arguments[1], NULL, 10) * 2654435761U + 1;
    check_protocol(strtoull(arguments[2], NULL, 10));
    check_keys();
    check_messages();
    puts("hand-overs hold");
    return 0;
}
