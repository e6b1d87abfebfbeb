/* A borrower's connection over verbs. A batch is one chain of work requests, of which only the last one is signalled. A
 * work request that fails always completes, and its wr_id says which one it was.
 *
 * To wait, a thread polls the completion queue for a millisecond, and soon yields the CPU between two polls. Then it sleeps
 * until the completion channel, or the end of the lender, wakes it. A thread that only polls would take the CPU from a
 * software device.
 */
#define _GNU_SOURCE
#include "rc_conn.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The time for which a thread polls before it sleeps. A card answers within a few microseconds; a software device takes some
 * 100 us, and waking up costs as much again. */
static const int64_t POLL_NS = 1000000;
/* The time for which it polls without yielding the CPU: a yield costs a tenth of such an answer. On one CPU it always
 * yields. */
static const int64_t SPIN_NS = 100000;
enum { MIN_POLLS = 2 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct ibv_context *open_device(const char *name)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    if (devices == NULL) {
        return NULL;
    }
    struct ibv_context *context = NULL;
    errno = ENODEV;
    for (struct ibv_device **device = devices; *device != NULL; device++) {
        if (strcmp(ibv_get_device_name(*device), name) == 0) {
            context = ibv_open_device(*device);
            break;
        }
    }
    int error = errno;
    ibv_free_device_list(devices);
    errno = error;
    return context;
}

RcConnError rc_conn_open(RcConn *conn, const char *device)
{
    conn->wrs = calloc(conn->depth, sizeof *conn->wrs);
    conn->sges = calloc(conn->depth, sizeof *conn->sges);
    if (conn->wrs == NULL || conn->sges == NULL) {
        return RC_CONN_NO_MEMORY;
    }
    conn->single_cpu = sysconf(_SC_NPROCESSORS_ONLN) == 1;
    if ((conn->context = open_device(device)) == NULL) {
        return RC_CONN_NO_DEVICE;
    }
    if ((conn->pd = ibv_alloc_pd(conn->context)) == NULL) {
        return RC_CONN_NO_PD;
    }
    if ((conn->channel = ibv_create_comp_channel(conn->context)) == NULL) {
        return RC_CONN_NO_COMP_CHANNEL;
    }
    if ((conn->cq = ibv_create_cq(conn->context, (int)conn->depth, NULL, conn->channel, 0)) == NULL) {
        return RC_CONN_NO_CQ;
    }
    if ((conn->mr = ibv_reg_mr(conn->pd, conn->stage, conn->stage_bytes, IBV_ACCESS_LOCAL_WRITE)) == NULL) {
        return RC_CONN_NO_MR;
    }
    struct ibv_qp_init_attr init_attr = {
        .send_cq = conn->cq,
        .recv_cq = conn->cq,
        .cap = {.max_send_wr = conn->depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    return (conn->qp = ibv_create_qp(conn->pd, &init_attr)) == NULL ? RC_CONN_NO_QP : RC_CONN_OPENED;
}

const char *rc_conn_missing(RcConnError error)
{
    static const char *const names[] = {
        [RC_CONN_OPENED] = "nothing",
        [RC_CONN_NO_MEMORY] = "memory",
        [RC_CONN_NO_DEVICE] = "device",
        [RC_CONN_NO_PD] = "protection domain",
        [RC_CONN_NO_COMP_CHANNEL] = "completion channel",
        [RC_CONN_NO_CQ] = "completion queue",
        [RC_CONN_NO_MR] = "memory region",
        [RC_CONN_NO_QP] = "queue pair",
    };
    return names[error];
}

unsigned rc_conn_timeout(unsigned milliseconds)
{
    /* Exponents: 1 ms, below which devices round up, and 8.6 s. */
    enum { SHORTEST = 8, LONGEST = 21, UNIT_NS = 4096 };
    uint64_t each_ns = (uint64_t)milliseconds * 1000000 / (RC_CONN_RETRIES + 1);
    unsigned exponent = SHORTEST;
    while (exponent < LONGEST && (uint64_t)UNIT_NS << (exponent + 1) <= each_ns) {
        exponent++;
    }
    return exponent;
}

int rc_conn_connect(RcConn *conn, const Peer *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = (uint8_t)peer->port_num,
        .path_mtu = (enum ibv_mtu)peer->path_mtu,
        .dest_qp_num = peer->dest_qpn,
        .rq_psn = peer->rq_psn,
        .sq_psn = peer->sq_psn,
        .max_rd_atomic = (uint8_t)peer->max_rd_atomic,
        .max_dest_rd_atomic = (uint8_t)peer->max_rd_atomic,
        .timeout = (uint8_t)peer->timeout,
        .retry_cnt = (uint8_t)peer->retry_cnt,
        .rnr_retry = (uint8_t)peer->retry_cnt,
        .ah_attr = {.is_global = 1,
                    .port_num = (uint8_t)peer->port_num,
                    .grh = {.dgid = peer->dgid,
                            .sgid_index = (uint8_t)peer->sgid_index,
                            .hop_limit = 64,
                            .traffic_class = (uint8_t)peer->traffic_class}},
    };
    /* No access flags: the lender reaches no memory of this side. */
    int error = ibv_modify_qp(conn->qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error == 0) {
        attr.qp_state = IBV_QPS_RTR;
        error = ibv_modify_qp(conn->qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    }
    if (error == 0) {
        attr.qp_state = IBV_QPS_RTS;
        error = ibv_modify_qp(conn->qp, &attr,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                  IBV_QP_MAX_QP_RD_ATOMIC);
    }
    return error;
}

static int post(RcConn *conn, const Transfer *transfers, unsigned count)
{
    size_t at = 0;
    bool read_before = false;
    for (unsigned each = 0; each < count; each++) {
        const Transfer *transfer = &transfers[each];
        bool last = each + 1 == count;
        conn->sges[each] = (struct ibv_sge){
            .addr = (uintptr_t)(conn->stage + at), .length = transfer->size, .lkey = conn->mr->lkey};
        conn->wrs[each] = (struct ibv_send_wr){
            .wr_id = each,
            .next = last ? NULL : &conn->wrs[each + 1],
            .sg_list = &conn->sges[each],
            .num_sge = 1,
            .opcode = transfer->is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
            .send_flags = last ? IBV_SEND_SIGNALED : 0,
            .wr.rdma = {.remote_addr = transfer->address, .rkey = transfer->rkey},
        };
        if (transfer->is_read) {
            read_before = true;
        } else {
            memcpy(conn->stage + at, transfer->local, transfer->size);
            /* Without the fence a device may write before it has read for an earlier request. */
            conn->wrs[each].send_flags |= read_before ? IBV_SEND_FENCE : 0;
        }
        at += transfer->size;
    }
    struct ibv_send_wr *bad;
    return ibv_post_send(conn->qp, conn->wrs, &bad);
}

/* Sleep until the completion channel has an event. Return 0, or why there is none. */
static int sleep_until_event(RcConn *conn, int64_t ends)
{
    int64_t left_ms = (ends - now_ns() + 999999) / 1000000;
    struct pollfd fds[] = {{.fd = conn->channel->fd, .events = POLLIN},
                            {.fd = conn->cm_fd, .events = POLLIN},
                            {.fd = conn->control_fd, .events = POLLRDHUP}};
    int ready = 0;
    if (left_ms > 0) {
        ready = poll(fds, sizeof fds / sizeof *fds, left_ms > 1000000 ? 1000000 : (int)left_ms);
    }
    if (ready < 0) {
        return errno == EINTR ? 0 : RC_CONN_BROKEN;
    }
    if ((fds[0].revents & POLLIN) == 0 || left_ms <= 0) {
        return ready > 0 ? RC_CONN_HUNG_UP : RC_CONN_SILENT;
    }
    struct ibv_cq *cq;
    void *cq_context;
    if (ibv_get_cq_event(conn->channel, &cq, &cq_context) != 0) {
        return RC_CONN_BROKEN;
    }
    ibv_ack_cq_events(cq, 1);
    return 0;
}

/* Wait for the next completion. Return 0, or why there is none. */
static int wait_for(RcConn *conn, struct ibv_wc *completion, int64_t ends)
{
    for (;;) {
        int64_t begun = now_ns(), polled_ns = 0;
        for (int polls = 0; polls < MIN_POLLS || polled_ns < POLL_NS; polls++) {
            int found = ibv_poll_cq(conn->cq, 1, completion);
            if (found != 0) {
                return found > 0 ? 0 : RC_CONN_BROKEN;
            }
            polled_ns = now_ns() - begun;
            if (conn->single_cpu || polled_ns >= SPIN_NS) {
                sched_yield();
            }
        }
        if (ibv_req_notify_cq(conn->cq, 0) != 0) {
            return RC_CONN_BROKEN;
        }
        /* A completion from before that call causes no event. */
        int found = ibv_poll_cq(conn->cq, 1, completion);
        if (found != 0) {
            return found > 0 ? 0 : RC_CONN_BROKEN;
        }
        int status = sleep_until_event(conn, ends);
        if (status != 0) {
            return status;
        }
    }
}

int rc_conn_carry_out(RcConn *conn, const Transfer *transfers, unsigned count, double seconds, unsigned *done)
{
    struct ibv_wc completion;
    int64_t ends = now_ns() + (int64_t)(seconds * 1e9);
    *done = 0;
    int status = post(conn, transfers, count) == 0 ? wait_for(conn, &completion, ends) : RC_CONN_BROKEN;
    if (status == 0) {
        status = (int)completion.status;
        *done = status == 0 ? count : (unsigned)completion.wr_id;
    }
    conn->ended = status != 0;
    size_t at = 0;
    for (unsigned each = 0; each < *done; each++) {
        if (transfers[each].is_read) {
            memcpy(transfers[each].local, conn->stage + at, transfers[each].size);
        }
        at += transfers[each].size;
    }
    return status;
}

unsigned rc_conn_time(RcConn *conn, const Transfer *transfer, unsigned turns, double seconds, int64_t *ns)
{
    unsigned made = 0, done;
    int64_t begun = now_ns();
    while (made < turns && rc_conn_carry_out(conn, transfer, 1, seconds, &done) == 0) {
        int64_t ended = now_ns();
        ns[made++] = ended - begun;
        begun = ended;
    }
    return made;
}

bool rc_conn_close(RcConn *conn)
{
    conn->ended = true;
    if (conn->qp != NULL && ibv_destroy_qp(conn->qp) != 0) {
        return false;
    }
    if (conn->cq != NULL) {
        ibv_destroy_cq(conn->cq);
    }
    if (conn->channel != NULL) {
        ibv_destroy_comp_channel(conn->channel);
    }
    if (conn->mr != NULL) {
        ibv_dereg_mr(conn->mr);
    }
    if (conn->pd != NULL) {
        ibv_dealloc_pd(conn->pd);
    }
    if (conn->context != NULL) {
        ibv_close_device(conn->context);
    }
    free(conn->wrs);
    free(conn->sges);
    conn->qp = NULL;
    conn->cq = NULL;
    conn->channel = NULL;
    conn->mr = NULL;
    conn->pd = NULL;
    conn->context = NULL;
    conn->wrs = NULL;
    conn->sges = NULL;
    return true;
}
