/* What the two data planes of a hand-over say to each other: fixed sizes, and bounds for all that is counted. Pure.
 *
 * The destination asks, the source answers each request, one at a time. An answer of `bytes` > 0 has a payload behind
 * it: of JOIN the number of the session, of MAP one byte for each page (enum page_kind), of GET the pages, of KEYS
 * struct peer_keys, of ROWS one struct peer_row for each page. Numbers in those are little-endian.
 */
#ifndef PONDSTACK_HANDOVER_PROTOCOL_H
#define PONDSTACK_HANDOVER_PROTOCOL_H

#include "../store/page_store.h"

enum { MESSAGE_BYTES = 16, SESSION_BYTES = 8 };
enum { MOST_PAYLOAD = STORE_MOST_PAGES * PAGE_BYTES, MOST_MAPPED = MOST_PAYLOAD, MOST_ROWS = 1024 };

/* JOIN: are you the source of a guest with `count` pages? FREEZE: it has stopped, let nobody write. MAP: where are
 * these pages? GET: give me these. DONE: I have all. KEYS: I can read what lenders have; give me the guest's key, and
 * (`first` is 1) a tenure: maps tell of lenders from then on, in this connection. ROWS: with which lenders are these?
 * MIRROR: I read these in your mirror's file, as far as they are stored; have me see them there. */
enum peer_verb { PEER_JOIN = 1, PEER_FREEZE, PEER_MAP, PEER_GET, PEER_DONE, PEER_KEYS, PEER_ROWS, PEER_MIRROR };

/* NOT_YET: ask again. REFUSED: the source has taken the guest back, or is of another guest. */
enum peer_status { PEER_OK, PEER_NOT_YET, PEER_REFUSED };

enum page_kind { KIND_UNTOUCHED, KIND_RESIDENT, KIND_STORED, KIND_LENT, KINDS };

/* What pages of a guest are sealed with; `tenure`: 0 where none was asked for. */
struct peer_keys {
    uint8_t key[KEY_BYTES];
    uint64_t sealed, tenure;
};

/* Where a lender has a page, and what it was sealed as; `buffer` of zeros: no lender has it. */
struct peer_row {
    uint8_t buffer[BUFFER_ID_BYTES];
    uint8_t tag[TAG_BYTES];
    uint64_t version, slot;
};

struct peer_request {
    uint32_t verb;
    uint32_t first, count; /* pages; of FREEZE and DONE 0, of JOIN all, of KEYS 0 or 1, and 0 */
};

struct peer_answer {
    uint32_t status;
    uint32_t count; /* of pages: of GET at least 1, and perhaps fewer than were asked for */
    uint32_t bytes;
};

void request_pack(const struct peer_request *request, uint8_t message[MESSAGE_BYTES]);
void answer_pack(const struct peer_answer *answer, uint8_t message[MESSAGE_BYTES]);

/* False: it is none that may be asked of a guest with so many pages. */
bool request_unpack(const uint8_t message[MESSAGE_BYTES], uint64_t pages, struct peer_request *request);

/* False: it is no answer to that request. */
bool answer_unpack(const uint8_t message[MESSAGE_BYTES], const struct peer_request *asked, struct peer_answer *answer);

#endif
