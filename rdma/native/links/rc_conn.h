/* A borrower's reliable connection (RC), with the verbs objects that it consists of. No Python in here. */
#ifndef PONDSTACK_RC_CONN_H
#define PONDSTACK_RC_CONN_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Added to the values of ibv_wc_status: the lender's process ended, no completion came by the deadline, a call of verbs
 * failed. */
enum { RC_CONN_HUNG_UP = -1, RC_CONN_SILENT = -2, RC_CONN_BROKEN = -3 };

/* What rc_conn_open could not get. */
typedef enum {
    RC_CONN_OPENED,
    RC_CONN_NO_MEMORY,
    RC_CONN_NO_DEVICE,
    RC_CONN_NO_PD,
    RC_CONN_NO_COMP_CHANNEL,
    RC_CONN_NO_CQ,
    RC_CONN_NO_MR,
    RC_CONN_NO_QP,
} RcConnError;

typedef struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_mr *mr; /* the staging memory, which belongs to the caller */
    struct ibv_qp *qp;
    struct ibv_send_wr *wrs; /* both arrays have `depth` elements */
    struct ibv_sge *sges;
    char *stage;
    size_t stage_bytes;
    unsigned depth;
    int cm_fd; /* readable once the lender has ended */
    int control_fd; /* hung up once the lender has ended */
    bool single_cpu; /* on one CPU, polling for a completion keeps the driver of the device from running */
    bool ended; /* only rc_conn_close may follow */
} RcConn;

/* One access. The sizes of a batch add up to at most the size of the staging memory. */
typedef struct {
    uint64_t address; /* at the lender */
    char *local;
    uint32_t rkey;
    uint32_t size;
    bool is_read;
} Transfer;

/* What ibv_modify_qp needs to know of the peer and of the path to it; units and names are those of ibv_qp_attr. */
typedef struct {
    union ibv_gid dgid;
    uint32_t dest_qpn, rq_psn, sq_psn;
    unsigned port_num, sgid_index, path_mtu, max_rd_atomic, traffic_class, timeout, retry_cnt;
} Peer;

/* Create the verbs objects. The caller has set `stage`, `stage_bytes`, `depth`, `cm_fd` and `control_fd`, and the rest to
 * zero. An error comes with errno. The caller calls rc_conn_close after an error, too. */
RcConnError rc_conn_open(RcConn *conn, const char *device);

/* Return the name of what could not be got, for an error text. */
const char *rc_conn_missing(RcConnError error);

/* How often the device sends a request again that nobody answers. rxe retries for ever with 7. */
enum { RC_CONN_RETRIES = 6 };

/* Return the device's time-out per try, an exponent, with which all tries together take at most so long (InfiniBand
 * specification, 9.7.6.1.3), as acknowledge_exponent in verbs/cm_attrs.py does. */
unsigned rc_conn_timeout(unsigned milliseconds);

/* Move the queue pair to RTS. Return 0 or an errno. */
int rc_conn_connect(RcConn *conn, const Peer *peer);

/* Carry out at most `depth` transfers in order. Return 0 or the status of the first one that failed; `done` is the number
 * of complete ones. A connection that returned another status than 0 has ended. Called without the interpreter's lock. */
int rc_conn_carry_out(RcConn *conn, const Transfer *transfers, unsigned count, double seconds, unsigned *done);

/* Carry out one transfer `turns` times, each within `seconds`. Return how many succeeded; `ns` has the duration of each. */
unsigned rc_conn_time(RcConn *conn, const Transfer *transfer, unsigned turns, double seconds, int64_t *ns);

/* Release everything; idempotent. False: the device keeps the queue pair and may write to the staging memory, so that
 * nothing was released; it may be tried again. */
bool rc_conn_close(RcConn *conn);

#endif
