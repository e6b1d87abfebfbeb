#define _GNU_SOURCE
#include "tcp_tier.h"

#include "../store/sealer.h"
#include "question.h"
#include "wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_BYTES = 4096 };

/* One part of a batch: adjacent slots. */
struct part {
    uint64_t slot;
    uint32_t count;
};

/* Write the header of a batch; its length. It always fits. */
static uint32_t describe(struct tcp_tier *tcp, const struct part *parts, uint32_t count, bool writes)
{
    char *header = tcp->mover->header;
    size_t at = (size_t)snprintf(header, TCP_HEADER_BYTES, "{\"operations\":[");
    for (uint32_t each = 0; each < count; each++) {
        at += (size_t)snprintf(header + at, TCP_HEADER_BYTES - at,
                               "%s{\"write\":%s,\"key\":%s,\"offset\":%" PRIu64 ",\"length\":%" PRIu64 "}",
                               each == 0 ? "" : ",", writes ? "true" : "false", tcp->key,
                               parts[each].slot * PAGE_BYTES, (uint64_t)parts[each].count * PAGE_BYTES);
    }
    return (uint32_t)(at + (size_t)snprintf(header + at, TCP_HEADER_BYTES - at, "]}"));
}

/* Whether an answer says that so many operations are done, and nothing else. No JSON is parsed: that would allocate. */
static bool all_done(const char *answer, size_t size, uint32_t count)
{
    char wanted[32];
    size_t length = (size_t)snprintf(wanted, sizeof wanted, "{\"done\":%" PRIu32 "}", count), matched = 0;
    for (size_t at = 0; at < size; at++) {
        if (answer[at] == ' ') {
            continue;
        }
        if (matched == length || answer[at] != wanted[matched++]) {
            return false;
        }
    }
    return matched == length;
}

/* Receive the answer of a batch, and what it read. EACCES: a refusal, after which the connection goes on. */
static int receive(struct tcp_mover *mover, uint32_t count, void *into, uint32_t bytes, uint64_t ends_ns)
{
    unsigned char lengths[LENGTHS_BYTES];
    char answer[ANSWER_BYTES];
    uint32_t header, body;
    int error = wire_receive(mover->fd, lengths, sizeof lengths, ends_ns);
    if (error != 0) {
        return error;
    }
    lengths_unpack(lengths, &header, &body);
    if (header > sizeof answer || body > bytes) {
        return EPROTO;
    }
    error = wire_receive(mover->fd, answer, header, ends_ns);
    error = error != 0 || body == 0 ? error : wire_receive(mover->fd, into, body, ends_ns);
    if (error != 0) {
        return error;
    }
    return all_done(answer, header, count) && body == bytes ? 0 : EACCES;
}

/* Have one message go out and one come back, while nobody else uses the connection. */
static int exchange(struct tcp_tier *tcp, const struct part *parts, uint32_t count, uint32_t bytes, void *into,
                    const void *from)
{
    struct tcp_mover *mover = tcp->mover;
    unsigned char lengths[LENGTHS_BYTES];
    if (mover->ended) {
        return ECONNRESET;
    }
    uint64_t ends_ns = wire_deadline(mover->deadline_ms);
    uint32_t header = describe(tcp, parts, count, from != NULL);
    lengths_pack(lengths, header, from != NULL ? bytes : 0);
    int error = wire_send(mover->fd, lengths, sizeof lengths, ends_ns);
    error = error != 0 ? error : wire_send(mover->fd, mover->header, header, ends_ns);
    error = error != 0 || from == NULL ? error : wire_send(mover->fd, from, bytes, ends_ns);
    error = error != 0 ? error : receive(mover, count, into, from != NULL ? 0 : bytes, ends_ns);
    mover->ended = error != 0 && error != EACCES; /* a late answer would be taken for the next one */
    return error;
}

static int carry_out(struct tcp_tier *tcp, const struct part *parts, uint32_t count, void *into, const void *from)
{
    uint32_t pages = 0;
    for (uint32_t each = 0; each < count; each++) {
        if (parts[each].slot >= tcp->slots || parts[each].count > tcp->slots - parts[each].slot) {
            return EINVAL;
        }
        pages += parts[each].count;
    }
    if (pages > TIER_MOST_SLOTS) {
        return EINVAL;
    }
    pthread_mutex_lock(&tcp->mover->turn);
    int error = exchange(tcp, parts, count, pages * PAGE_BYTES, into, from);
    pthread_mutex_unlock(&tcp->mover->turn);
    return error;
}

static int scattered(struct tier *tier, const uint32_t *slots, uint32_t count, void *into, const void *from)
{
    struct part parts[TIER_MOST_SLOTS];
    if (count > TIER_MOST_SLOTS) {
        return EINVAL;
    }
    for (uint32_t each = 0; each < count; each++) {
        parts[each] = (struct part){slots[each], 1};
    }
    return carry_out((struct tcp_tier *)tier, parts, count, into, from);
}

static int tcp_read(struct tier *tier, uint64_t slot, uint32_t count, void *into)
{
    return carry_out((struct tcp_tier *)tier, &(struct part){slot, count}, 1, into, NULL);
}

static int tcp_write(struct tier *tier, uint64_t slot, uint32_t count, const void *from)
{
    return carry_out((struct tcp_tier *)tier, &(struct part){slot, count}, 1, NULL, from);
}

static int tcp_gather(struct tier *tier, const uint32_t *slots, uint32_t count, void *into)
{
    return scattered(tier, slots, count, into, NULL);
}

static int tcp_scatter(struct tier *tier, const uint32_t *slots, uint32_t count, const void *from)
{
    return scattered(tier, slots, count, NULL, from);
}

static int tcp_discard(struct tier *tier, uint64_t slot, uint32_t count)
{
    (void)tier;
    (void)slot;
    (void)count;
    return 0; /* the region is all there, and its lender's; what is in it is sealed */
}

static void tcp_close(struct tier *tier)
{
    (void)tier; /* the connection is the link's */
}

static const struct tier_type tcp_type = {
    .name = "tcp",
    .read = tcp_read,
    .write = tcp_write,
    .gather = tcp_gather,
    .scatter = tcp_scatter,
    .discard = tcp_discard,
    .close = tcp_close,
};

void tcp_tier_begin(struct tcp_tier *made, struct tcp_mover *mover, uint64_t slots, const char *key)
{
    *made = (struct tcp_tier){.tier = {&tcp_type}, .mover = mover, .slots = slots};
    snprintf(made->key, sizeof made->key, "%s", key);
}
