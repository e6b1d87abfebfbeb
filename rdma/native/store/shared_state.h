/* What has to outlive a killed data plane, and must not outlive the consumer: key, versions, tags and the map of one
 * guest or block device.
 *
 * It lies in a memfd that another process holds open: the guest's own, or the keeper of a block device. Each row is
 * written in an order that a death at any instruction leaves sound: a row says where a page lies (`place`) only after
 * version, tag and content were written. That of a guest is believed only where the guest's memory has a hole: data
 * that is present is always the truth. A block device has a journal for what is half written (store/journal.h).
 */
#ifndef PONDSTACK_STORE_SHARED_STATE_H
#define PONDSTACK_STORE_SHARED_STATE_H

#include "sealer.h"

#include <stdatomic.h>

#define SHARED_STATE_NAME "pondstack-pages-" /* and the guest's UUID: the name of the memfd */

enum { NOT_STORED = 0, IN_MIRROR = 1, LOST = 2 /* nobody knows its content until it is written again */ };
/* Of a guest that comes from another data plane: that one has the page; nobody has asked yet how; in local memory
 * there; in its store; in its store and with a lender, whose slot may be taken over. A row that is LENT_AT_SOURCE has
 * version and tag of what the lender has while this process knows the slot. */
enum { AT_SOURCE = 3, RESIDENT_AT_SOURCE = 4, STORED_AT_SOURCE = 5, LENT_AT_SOURCE = 6 };
/* A guest that comes from another data plane is INCOMING before that one was frozen, TAKING afterwards. One that goes
 * to another data plane is FROZEN from when nobody may write, until it is withdrawn or SWITCHED; then it is never
 * attached again. */
enum state_phase {
    PHASE_NEW = 0,
    PHASE_ATTACHED = 1,
    PHASE_HOME = 2,
    PHASE_INCOMING = 3,
    PHASE_TAKING = 4,
    PHASE_SWITCHED = 5,
    PHASE_FROZEN = 6
};

/* The upper bits of a page's version: whoever seals under one key, before a hand-over and after it, has a tenure of its
 * own, so that no two of them seal a page under one version. */
enum { TENURE_BITS = 12, COUNT_BITS = 36, MOST_TENURE = (1 << TENURE_BITS) - 1 };

struct page_row {
    uint64_t version; /* counted up before each seal: 0 was never sealed */
    uint8_t tag[TAG_BYTES];
    _Atomic uint64_t place; /* NOT_STORED: a hole reads as zeros */
};

struct state_header {
    char magic[8];
    uint64_t pages;
    uint64_t sealed; /* whether content is sealed */
    uint8_t key[KEY_BYTES];
    char guest[UUID_BYTES];
    _Atomic int32_t userfault_fd; /* its number in the guest's process; -1: there is none yet */
    _Atomic uint32_t phase;
    _Atomic uint64_t last_version; /* of any page of a block device; counted up before each seal */
    uint8_t session_key[KEY_BYTES]; /* of a hand-over */
    uint64_t session;               /* its number, which its source drew */
    uint64_t memory_offset;         /* in the file, of a guest that was handed over */
    _Atomic uint64_t tenure;        /* of this data plane's seals */
    _Atomic uint32_t adopted;       /* key and tenure are the source's gift */
    _Atomic uint32_t alone; /* whether a source that gave them has let go of the guest is not known for sure */
};

struct shared_state {
    struct state_header *header;
    struct page_row *rows;
    void *spare; /* behind the rows, on a page's boundary */
    uint64_t bytes;
};

/* Begin one in a memfd that may be sealed, new or of an earlier attachment: draws a key, and fixes the size, with
 * `spare` bytes behind the rows. */
int state_create(struct shared_state *state, int fd, uint64_t pages, uint64_t spare, const char *guest, bool sealed,
                 struct problem *problem);

/* Go on with one; refuses another guest's, and what is none. */
int state_open(struct shared_state *state, int fd, uint64_t pages, uint64_t spare, const char *guest,
               struct problem *problem);

/* Unmap; idempotent. */
void state_close(struct shared_state *state);

/* Overwrite the key: what was sealed under it is gone, wherever copies of it lie. */
void state_forget_key(struct shared_state *state);

#endif
