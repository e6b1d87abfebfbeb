#include "protocol.h"

enum { WORDS = MESSAGE_BYTES / 4 };
_Static_assert(sizeof(struct peer_keys) == 48 && sizeof(struct peer_row) == 48, "they have no holes");
_Static_assert(MOST_ROWS * sizeof(struct peer_row) <= MOST_PAYLOAD, "they fit");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payloads are as they are in memory");

static void pack(const uint32_t words[WORDS], uint8_t message[MESSAGE_BYTES])
{
    for (int at = 0; at < MESSAGE_BYTES; at++) {
        message[at] = (uint8_t)(words[at / 4] >> (at % 4 * 8)); /* little-endian */
    }
}

static void unpack(const uint8_t message[MESSAGE_BYTES], uint32_t words[WORDS])
{
    for (int at = 0; at < WORDS; at++) {
        const uint8_t *word = message + at * 4;
        words[at] = word[0] | (uint32_t)word[1] << 8 | (uint32_t)word[2] << 16 | (uint32_t)word[3] << 24;
    }
}

void request_pack(const struct peer_request *request, uint8_t message[MESSAGE_BYTES])
{
    pack((uint32_t[WORDS]){request->verb, request->first, request->count, 0}, message);
}

void answer_pack(const struct peer_answer *answer, uint8_t message[MESSAGE_BYTES])
{
    pack((uint32_t[WORDS]){answer->status, answer->count, answer->bytes, 0}, message);
}

/* The most pages that one request may be about, of those that are about pages. */
static uint64_t most_of(uint32_t verb)
{
    return verb == PEER_GET || verb == PEER_MIRROR ? STORE_MOST_PAGES : verb == PEER_ROWS ? MOST_ROWS : MOST_MAPPED;
}

bool request_unpack(const uint8_t message[MESSAGE_BYTES], uint64_t pages, struct peer_request *request)
{
    uint32_t words[WORDS];
    unpack(message, words);
    *request = (struct peer_request){.verb = words[0], .first = words[1], .count = words[2]};
    bool inside = request->count > 0 && (uint64_t)request->first + request->count <= pages;
    switch (request->verb) {
    case PEER_JOIN:
        return words[3] == 0 && request->first == 0;
    case PEER_FREEZE:
    case PEER_DONE:
        return words[3] == 0 && request->first == 0 && request->count == 0;
    case PEER_KEYS:
        return words[3] == 0 && request->first <= 1 && request->count == 0;
    case PEER_MAP:
    case PEER_GET:
    case PEER_ROWS:
    case PEER_MIRROR:
        return words[3] == 0 && inside && request->count <= most_of(request->verb);
    default:
        return false;
    }
}

/* What has to be behind an answer that is OK. */
static uint64_t payload_of(const struct peer_request *asked, uint32_t count)
{
    switch (asked->verb) {
    case PEER_JOIN:
        return SESSION_BYTES;
    case PEER_MAP:
        return count;
    case PEER_GET:
        return (uint64_t)count * PAGE_BYTES;
    case PEER_KEYS:
        return sizeof(struct peer_keys);
    case PEER_ROWS:
        return (uint64_t)count * sizeof(struct peer_row);
    default:
        return 0;
    }
}

bool answer_unpack(const uint8_t message[MESSAGE_BYTES], const struct peer_request *asked, struct peer_answer *answer)
{
    uint32_t words[WORDS];
    unpack(message, words);
    *answer = (struct peer_answer){.status = words[0], .count = words[1], .bytes = words[2]};
    if (words[3] != 0 || answer->status > PEER_REFUSED) {
        return false;
    }
    if (answer->status != PEER_OK) {
        return answer->count == 0 && answer->bytes == 0;
    }
    bool counted = asked->verb == PEER_GET ? answer->count >= 1 && answer->count <= asked->count
                                           : answer->count == asked->count;
    return counted && answer->bytes == payload_of(asked, answer->count);
}
