/* What an NBD client may send, to the code that takes it (block/connection.c), without sockets.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined -DLIBFUZZER. Without: nbd_fuzz SEED STEPS runs seeded
 * sessions, first a correct one that is compared with a model byte by byte, then a damaged one, which may do anything
 * but harm; nbd_fuzz FILE... replays inputs.
 */
#define _GNU_SOURCE
#include "../../native/block/connection.h"
#include "../../native/store/file_tier.h"
#include "../../native/store/journal.h"
#include "checks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 96, BYTES = PAGES * PAGE_BYTES, MOST_SENT = 1 << 20 };
static const char NAME[] = "6f1c2d1e-0000-4000-8000-000000000002";

static struct shared_state state;
static struct file_tier mirror;
static struct page_store store;
static struct device device;
static struct nbd_connection connection;
static uint8_t model[BYTES], all[BYTES], session[MOST_SENT], answers[4 * MOST_SENT];
static uint32_t session_bytes, answered;

static void begin(void)
{
    struct problem problem = {""};
    int table = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    char path[] = "/dev/shm/nbd-fuzz-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && state_create(&state, table, PAGES, sizeof(struct journal), NAME, true, &problem) == 0);
    CHECK(file_tier_open(&mirror, path, PAGES, true, &problem) == 0);
    unlink(path);
    close(file);
    close(table);
    CHECK(store_begin(&store, &state, &mirror.tier, &problem) == 0);
    device.store = &store;
    atomic_store(&device.bytes, BYTES);
}

/* Send bytes in pieces, of which `cut` says how large they are, and take the answers. */
static void exchange(const uint8_t *sent, size_t size, uint32_t cut)
{
    connection_begin(&connection, &device, NAME);
    answered = 0;
    for (size_t done = 0; done < size && connection.phase != FINISHED;) {
        size_t room = CONNECTION_IN - connection.got, piece = cut == 0 ? room : 1 + cut % 5000;
        piece = piece < room ? piece : room;
        piece = piece < size - done ? piece : size - done;
        memcpy(connection.in + connection.got, sent + done, piece);
        connection.got += (uint32_t)piece;
        done += piece;
        uint32_t put;
        do {
            connection_step(&connection);
            put = connection.put;
            CHECK(connection.got <= CONNECTION_IN && put <= CONNECTION_OUT);
            if (answered + put <= sizeof answers) {
                memcpy(answers + answered, connection.out, put);
                answered += put;
            }
            connection_sent(&connection, put);
        } while (put > 0);
        CHECK(connection.phase == FINISHED || connection.got < CONNECTION_IN); /* it never gets stuck */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (device.store == NULL) {
        begin();
    }
    if (size > 1) {
        exchange(data + 1, size - 1, data[0]);
    }
    CHECK(device_read(&device, 0, BYTES, all) == 0); /* nothing that a client sends damages a page */
    return 0;
}

#ifndef LIBFUZZER
static uint64_t dice;

static uint32_t roll(uint32_t sides)
{
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((dice >> 33) % sides);
}

static void say(const void *bytes, uint32_t size)
{
    memcpy(session + session_bytes, bytes, size);
    session_bytes += size;
}

static void say_option(uint32_t option, const char *name)
{
    uint8_t head[NBD_OPTION_BYTES + 4], none[2] = {0};
    put_64(head, NBD_OPTIONS);
    put_32(head + 8, option);
    put_32(head + 12, (uint32_t)strlen(name) + 6);
    put_32(head + 16, (uint32_t)strlen(name));
    say(head, sizeof head);
    say(name, (uint32_t)strlen(name));
    say(none, sizeof none);
}

static void say_hello(void)
{
    uint8_t flags[4];
    session_bytes = 0;
    put_32(flags, NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES);
    say(flags, sizeof flags);
    say_option(NBD_INFO, NAME);
    say_option(NBD_GO, roll(2) ? NAME : "");
}

static void say_command(uint16_t flags, uint16_t kind, uint64_t cookie, uint64_t offset, uint32_t bytes)
{
    uint8_t head[NBD_COMMAND_BYTES];
    put_32(head, NBD_REQUEST);
    put_16(head + 4, flags);
    put_16(head + 6, kind);
    put_64(head + 8, cookie);
    put_64(head + 16, offset);
    put_32(head + 24, bytes);
    say(head, sizeof head);
}

/* Where the answers to what follows the negotiation begin. */
static uint32_t after_negotiation(void)
{
    uint32_t at = NBD_HELLO_BYTES;
    while (at + NBD_OPTION_REPLY_BYTES <= answered && get_64(answers + at) == NBD_OPTION_REPLY) {
        at += NBD_OPTION_REPLY_BYTES + get_32(answers + at + 16);
    }
    return at;
}

/* One command of a correct client, the model beside it. Returns what the answer is to have besides its head. */
static uint32_t say_correct(uint64_t cookie, uint8_t *expected)
{
    static const uint16_t kinds[] = {NBD_READ, NBD_WRITE, NBD_WRITE, NBD_TRIM, NBD_WRITE_ZEROES, NBD_FLUSH};
    uint16_t kind = kinds[roll(6)];
    uint32_t offset = roll(2) ? roll(BYTES) : roll(PAGES) * PAGE_BYTES, most = BYTES - offset;
    uint32_t bytes = 1 + roll(most < 40000 ? most : 40000), given = 0;
    say_command(kind == NBD_WRITE_ZEROES ? (uint16_t)roll(4) : (uint16_t)(roll(2) * NBD_FUA), kind, cookie, offset,
                kind == NBD_FLUSH ? 0 : bytes);
    if (kind == NBD_READ) {
        memcpy(expected, model + offset, bytes);
        given = bytes;
    } else if (kind == NBD_WRITE) {
        for (uint32_t at = 0; at < bytes; at++) {
            model[offset + at] = (uint8_t)roll(256);
        }
        say(model + offset, bytes);
    } else if (kind == NBD_WRITE_ZEROES) {
        memset(model + offset, 0, bytes);
    } else if (kind == NBD_TRIM) {
        uint32_t first = (offset + PAGE_BYTES - 1) / PAGE_BYTES, end = (offset + bytes) / PAGE_BYTES;
        memset(model + (size_t)first * PAGE_BYTES, 0, end > first ? (size_t)(end - first) * PAGE_BYTES : 0);
    }
    return given;
}

/* A session of a correct client: each answer is the one that the model gives. */
static void correct_session(void)
{
    enum { COMMANDS_SAID = 12 };
    static uint8_t expected[COMMANDS_SAID][40000];
    uint32_t given[COMMANDS_SAID];
    say_hello();
    for (uint32_t at = 0; at < COMMANDS_SAID; at++) {
        given[at] = say_correct(at, expected[at]);
    }
    say_command(0, NBD_DISCONNECT, 0, 0, 0);
    exchange(session, session_bytes, roll(6000));
    uint32_t at = after_negotiation();
    for (uint32_t each = 0; each < COMMANDS_SAID; each++) {
        CHECK(get_32(answers + at) == NBD_SIMPLE_REPLY && get_32(answers + at + 4) == 0);
        CHECK(get_64(answers + at + 8) == each);
        CHECK(memcmp(answers + at + NBD_REPLY_BYTES, expected[each], given[each]) == 0);
        at += NBD_REPLY_BYTES + given[each];
    }
    CHECK(at == answered && connection.phase == FINISHED && !connection.misbehaved);
    CHECK(device_read(&device, 0, BYTES, all) == 0 && memcmp(all, model, BYTES) == 0);
}

static uint32_t damaged_number(void)
{
    static const uint32_t odd[] = {0, 1, 4095, 4096, BYTES, MOST_COMMAND_BYTES, MOST_COMMAND_BYTES + 1, UINT32_MAX};
    return odd[roll(sizeof odd / sizeof *odd)];
}

/* A session that goes wrong somewhere. */
static void damaged_session(void)
{
    say_hello();
    uint32_t begins = session_bytes, commands = 1 + roll(8);
    for (uint32_t at = 0; at < commands; at++) {
        uint64_t offset = roll(2) ? damaged_number() : (uint64_t)damaged_number() << 32 | damaged_number();
        uint32_t bytes = roll(2) ? damaged_number() : roll(9000);
        say_command((uint16_t)damaged_number(), (uint16_t)roll(9), at, offset, bytes);
        uint32_t sent = roll(3) ? bytes < 9000 ? bytes : 9000 : roll(9000);
        say(model, roll(2) ? sent : 0);
    }
    for (uint32_t flips = roll(6); flips > 0; flips--) {
        session[roll(roll(2) ? begins : session_bytes)] = (uint8_t)roll(256);
    }
    exchange(session, roll(4) ? session_bytes : roll(session_bytes), roll(6000));
    CHECK(device_read(&device, 0, BYTES, all) == 0);
    memcpy(model, all, BYTES);
}

static void replay(const char *path)
{
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    size_t size = fread(session, 1, sizeof session, file);
    fclose(file);
    (void)LLVMFuzzerTestOneInput(session, size);
}

int main(int count, char **arguments)
{
    begin();
    if (count == 3 && arguments[1][0] != '/') {
        dice = strtoull(arguments[1], NULL, 10);
        long steps = strtol(arguments[2], NULL, 10);
        uint64_t refused = 0;
        for (long step = 0; step < steps; step++) {
            correct_session();
            damaged_session();
            refused += connection.misbehaved;
        }
        refused += atomic_load(&device.counters.refused);
        printf("%ld tried, %llu refused, %ld accepted\n", 2 * steps, (unsigned long long)refused, steps);
        return 0;
    }
    for (int at = 1; at < count; at++) {
        replay(arguments[at]);
    }
    return 0;
}
#endif
