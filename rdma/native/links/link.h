/* A link to a lender: what a ticket opens, and a tier for each key of it. One interface, one driver a file; the
 * counterparts of pondstack_rdma's links. For the control thread; the tiers are for the threads that move pages. Tiers of
 * one link may be of several of them: where they share a connection, one access has it at a time.
 *
 * All tiers of a link end together where its driver has one connection for them: no page of a lender that does not
 * answer waits for it a second time.
 */
#ifndef PONDSTACK_LINKS_LINK_H
#define PONDSTACK_LINKS_LINK_H

#include "../store/problem.h"
#include "../store/tier.h"

#include <jansson.h>
#include <stdbool.h>

enum { LENDER_NAME_BYTES = 128, LEAST_DEADLINE_MS = 10, MOST_DEADLINE_MS = 60000, DEADLINE_MS = 2000 };

/* A ticket of the lender's agent, unpacked; the texts are the JSON object's. */
struct ticket {
    json_t *json;
    const char *driver, *address, *borrower, *secret;
};

/* What a key says of its region. */
struct key {
    json_t *json;
    uint64_t number, slots;
    json_t *location; /* where its region is, as the driver's lender says it: nothing is asked of that; NULL: ask it */
};

struct link {
    const struct link_type *type;
    char name[LENDER_NAME_BYTES];
    uint32_t deadline_ms; /* so long an access may take */
    uint32_t answer_ms;   /* so long the lender's process may take for an answer; nobody waits for a page meanwhile */
    uint32_t uses;        /* who has it: with the last one it ends */
    bool kept;            /* of the whole process, rather than of one guest */
    bool lost;            /* as link_lives found it */
};

struct link_type {
    const char *driver;
    uint32_t bytes; /* of the driver's own struct, which begins with `link` */
    /* Connect, and show the ticket. -1 and a problem when the lender refuses it, or does not answer in time; then `end`
     * is called, too. */
    int (*connect)(struct link *link, const struct ticket *ticket, struct problem *problem);
    /* Show a key, or take its location. Returns a tier of its region, allocated, which ends by `close` and `free` before
     * its link does; NULL and a problem. */
    struct tier *(*open)(struct link *link, const struct key *key, struct problem *problem);
    /* Whether accesses can succeed, by what this side knows: a lender that is silent, or sleeps, lives. At once. */
    bool (*lives)(struct link *link);
    /* Hang up, and release all but the struct. */
    void (*end)(struct link *link);
};

extern const struct link_type shm_link, tcp_link, verbs_link;

/* Connect to a lender by the driver that its ticket names; the caller has it. NULL and a problem. */
struct link *link_connect(const char *name, json_t *ticket, uint32_t deadline_ms, struct problem *problem);

/* Show a key. NULL and a problem. */
struct tier *link_open(struct link *link, const struct key *key, struct problem *problem);

/* Whether its lender can be reached over it; one that is lost stays so. */
bool link_lives(struct link *link);

/* Have a link that somebody else has, too. */
struct link *link_share(struct link *link);

/* Let go of a link, with none of one's tiers left. With the last one who has it, it hangs up, and is freed. */
void link_end(struct link *link);

/* Whether the other side of a socket has hung up; for drivers. */
bool link_hung_up(int fd);

#endif
