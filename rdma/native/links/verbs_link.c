/* A lender over RDMA: librdmacm connects a queue pair, by which pages are moved; a TCP connection to the lender's process
 * turns keys that do not say where their region is into addresses and rkeys. No access uses it. The counterpart of
 * pondstack_rdma/verbs/link.py. */
#define _GNU_SOURCE
#include "../store/sealer.h"
#include "address.h"
#include "cm_connection.h"
#include "handshake.h"
#include "link.h"
#include "question.h"
#include "verbs_tier.h"
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STAGE_BYTES = TIER_MOST_SLOTS * PAGE_BYTES };

struct verbs_link {
    struct link link;
    char address[HOST_BYTES + 8];
    struct cm_connection cm;
    struct channel keys;
    struct verbs_mover mover;
};

/* Get memory for transfers, which a child of this process does not inherit: its copy would take the pages from the
 * device. */
static char *map_stage(void)
{
    void *stage = mmap(NULL, STAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED) {
        return NULL;
    }
    if (madvise(stage, STAGE_BYTES, MADV_DONTFORK) != 0) {
        munmap(stage, STAGE_BYTES);
        return NULL;
    }
    (void)madvise(stage, STAGE_BYTES, MADV_DONTDUMP);
    return stage;
}

/* Make a queue pair on the device that leads to the lender. */
static int open_device(struct verbs_link *verbs, struct problem *problem)
{
    RcConn *conn = &verbs->mover.conn;
    char host[HOST_BYTES];
    int port;
    (void)address_split(verbs->cm.address, host, &port); /* it was resolved */
    verbs->keys.fd = wire_socket(host);
    conn->stage = map_stage();
    if (verbs->keys.fd < 0 || conn->stage == NULL) {
        return problem_set(problem, "no socket or memory for lender %s: %s", verbs->link.name, strerror(errno));
    }
    conn->stage_bytes = STAGE_BYTES;
    conn->depth = TIER_MOST_SLOTS;
    conn->cm_fd = verbs->cm.channel->fd;
    conn->control_fd = verbs->keys.fd;
    RcConnError error = rc_conn_open(conn, cm_connection_device(&verbs->cm));
    return error == RC_CONN_OPENED
               ? 0
               : problem_set(problem, "the RDMA device gives no %s for lender %s: %s; see `rdma resource`",
                             rc_conn_missing(error), verbs->link.name, strerror(errno));
}

/* Connect the queue pair to the lender's; its number in `peer`. */
static int connect_pair(struct verbs_link *verbs, uint32_t *peer, struct problem *problem)
{
    CmAttrs attrs;
    int error = cm_attrs_of(verbs->cm.id, &attrs);
    if (error == 0) {
        Peer other = {
            .dgid = attrs.dgid,
            .dest_qpn = attrs.dest_qpn,
            .rq_psn = attrs.rq_psn,
            .sq_psn = attrs.sq_psn,
            .port_num = attrs.port_num,
            .sgid_index = attrs.sgid_index,
            .path_mtu = attrs.path_mtu,
            .max_rd_atomic = attrs.max_rd_atomic,
            .traffic_class = attrs.traffic_class,
            .timeout = rc_conn_timeout(verbs->link.deadline_ms),
            .retry_cnt = RC_CONN_RETRIES,
        };
        error = rc_conn_connect(&verbs->mover.conn, &other);
        *peer = attrs.dest_qpn;
    }
    if (error != 0) {
        return problem_set(problem, "lender %s: no connection to %s: %s; see `rdma link` at both sides",
                           verbs->link.name, verbs->cm.address, strerror(error));
    }
    return cm_connection_establish(&verbs->cm, problem);
}

/* Open the key channel of a connection. */
static int show_ticket(struct verbs_link *verbs, const struct ticket *ticket, int key_port, uint32_t peer,
                       struct problem *problem)
{
    char host[HOST_BYTES];
    int port;
    (void)address_split(ticket->address, host, &port);
    int error = wire_connect(verbs->keys.fd, host, key_port, verbs->cm.ends_ns);
    if (error != 0) {
        return problem_set(problem, "lender %s cannot be reached at port %d of %s: %s", verbs->link.name, key_port, host,
                           strerror(error));
    }
    json_t *question = json_pack("{s:O, s:I}", "ticket", ticket->json, "pair", (json_int_t)peer);
    json_t *answer = channel_ask(&verbs->keys, question, verbs->cm.ends_ns, problem);
    json_decref(answer);
    return answer == NULL ? -1 : 0;
}

static int verbs_connect(struct link *link, const struct ticket *ticket, struct problem *problem)
{
    struct verbs_link *verbs = (struct verbs_link *)link;
    unsigned char request[REQUEST_BYTES], response[RESPONSE_BYTES];
    uint32_t peer = 0;
    verbs->keys = (struct channel){.fd = -1, .lender = link->name};
    verbs->mover.deadline_ms = link->deadline_ms;
    pthread_mutex_init(&verbs->mover.turn, NULL);
    snprintf(verbs->address, sizeof verbs->address, "%s", ticket->address);
    verbs->cm = (struct cm_connection){
        .lender = link->name, .address = verbs->address, .ends_ns = wire_deadline(link->answer_ms)};
    if (handshake_request(ticket, request, problem) != 0 || cm_connection_resolve(&verbs->cm, problem) != 0 ||
        open_device(verbs, problem) != 0 ||
        cm_connection_request(&verbs->cm, verbs->mover.conn.qp->qp_num, request, sizeof request, response, problem) !=
            0) {
        return -1;
    }
    int port = handshake_port(response);
    if (port < 0) {
        return problem_set(problem, "lender %s answers as one of another version", link->name);
    }
    return connect_pair(verbs, &peer, problem) != 0 ? -1 : show_ticket(verbs, ticket, port, peer, problem);
}

static struct tier *verbs_open(struct link *link, const struct key *key, struct problem *problem)
{
    struct verbs_link *verbs = (struct verbs_link *)link;
    json_int_t address, rkey;
    json_t *found = key->location != NULL ? json_incref(key->location)
                                          : channel_ask(&verbs->keys, json_pack("{s:O}", "key", key->json),
                                                        wire_deadline(link->answer_ms), problem);
    if (found == NULL) {
        return NULL;
    }
    bool good = json_unpack(found, "{s:I, s:I}", "address", &address, "rkey", &rkey) == 0;
    json_decref(found);
    struct verbs_tier *made = good ? malloc(sizeof *made) : NULL;
    if (made == NULL) {
        problem_set(problem, "lender %s says of key %llu what is no region", link->name,
                    (unsigned long long)key->number);
        return NULL;
    }
    verbs_tier_begin(made, &verbs->mover, key->slots, (uint64_t)address, (uint32_t)rkey);
    return &made->tier;
}

static bool verbs_lives(struct link *link)
{
    struct verbs_link *verbs = (struct verbs_link *)link;
    struct pollfd events = {.fd = verbs->cm.channel->fd, .events = POLLIN}; /* the end of the lender is one */
    return !verbs->mover.ended && poll(&events, 1, 0) == 0 && !link_hung_up(verbs->keys.fd);
}

static void verbs_end(struct link *link)
{
    struct verbs_link *verbs = (struct verbs_link *)link;
    char *stage = verbs->mover.conn.stage;
    /* Where the device keeps the queue pair, it may still write to that memory: it stays. */
    if (rc_conn_close(&verbs->mover.conn) && stage != NULL) {
        munmap(stage, STAGE_BYTES);
    }
    cm_connection_close(&verbs->cm);
    if (verbs->keys.fd >= 0) {
        close(verbs->keys.fd);
    }
    pthread_mutex_destroy(&verbs->mover.turn);
}

const struct link_type verbs_link = {.driver = "verbs",
                                     .bytes = sizeof(struct verbs_link),
                                     .connect = verbs_connect,
                                     .open = verbs_open,
                                     .lives = verbs_lives,
                                     .end = verbs_end};
