/* One borrower's reliable connection, with all that it is made of: no Python in here. */
#ifndef PONDSTACK_LINE_H
#define PONDSTACK_LINE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beside the statuses of verbs. */
enum { LINE_HUNG_UP = -1, LINE_SILENT = -2, LINE_BROKEN = -3 };

typedef struct {
    struct ibv_context *context;
    struct ibv_pd *domain;
    struct ibv_comp_channel *channel;
    struct ibv_cq *queue;
    struct ibv_mr *region; /* of the staging memory, which is the caller's */
    struct ibv_qp *pair;
    struct ibv_send_wr *works; /* `depth` of each */
    struct ibv_sge *pieces;
    char *stage;
    size_t stage_bytes;
    unsigned depth;
    int manager, control; /* descriptors: readable, and hung up, once the lender has ended */
    bool alone; /* the machine has one CPU: whoever looks for a completion keeps it from the device's driver */
    bool ended; /* nothing but closing is left */
} Line;

/* One access; sizes of a batch together are at most those of the staging memory. */
typedef struct {
    uint64_t address; /* at the lender */
    char *local;
    uint32_t rkey;
    uint32_t size;
    bool is_read;
} Transfer;

/* What the other side told, and what was chosen here. Numbers as verbs have them. */
typedef struct {
    union ibv_gid gid;
    uint32_t number, their_packet, our_packet;
    unsigned port, gid_index, mtu, reads, traffic_class, timeout, retries;
} Peer;

/* Make all of a line whose `stage`, `stage_bytes`, `depth`, `manager` and `control` are set, and the rest zero. NULL, or what was
 * not to be had, with errno; line_close in either case. */
const char *line_open(Line *line, const char *device);

/* Connect it: 0, or an errno. */
int line_connect(Line *line, const Peer *peer);

/* Carry out at most `depth` transfers in order: the status of the one that failed, or 0. `done` are complete. After
 * another status than 0 the line has ended. Without the interpreter's lock. */
int line_carry_out(Line *line, const Transfer *transfers, unsigned count, double seconds, unsigned *done);

/* Carry out one transfer again and again, each within `seconds`: how often it went well, and the nanoseconds of each. */
unsigned line_time(Line *line, const Transfer *transfer, unsigned turns, double seconds, int64_t *ns);

/* Give all back; idempotent. */
void line_close(Line *line);

#endif
