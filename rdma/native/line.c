/* A borrower's connection over verbs: a batch is one chain of work requests, of which only the last is signalled; one
 * that fails always is, and says which it was.
 *
 * Waiting: look for a completion, soon giving the CPU away between two looks, for a millisecond; then sleep until the
 * completion channel or the lender's end wakes it. A loop that only polls would take the CPU from a device that is software.
 */
#define _GNU_SOURCE
#include "line.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* So long a completion is looked for. A card answers within a few microseconds of it; a device that is software takes
 * some 100 us, and to be woken up costs as much again. */
static const int64_t LOOK_NS = 1000000;
/* So long without giving the CPU away, which costs a tenth of such an answer; never where there is one CPU only. */
static const int64_t SPIN_NS = 100000;
enum { LOOKS_AT_LEAST = 2 };

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

const char *line_open(Line *line, const char *device)
{
    line->works = calloc(line->depth, sizeof *line->works);
    line->pieces = calloc(line->depth, sizeof *line->pieces);
    if (line->works == NULL || line->pieces == NULL) {
        return "memory";
    }
    line->alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
    if ((line->context = open_device(device)) == NULL) {
        return "device";
    }
    if ((line->domain = ibv_alloc_pd(line->context)) == NULL) {
        return "protection domain";
    }
    if ((line->channel = ibv_create_comp_channel(line->context)) == NULL) {
        return "completion channel";
    }
    if ((line->queue = ibv_create_cq(line->context, (int)line->depth, NULL, line->channel, 0)) == NULL) {
        return "completion queue";
    }
    if ((line->region = ibv_reg_mr(line->domain, line->stage, line->stage_bytes, IBV_ACCESS_LOCAL_WRITE)) == NULL) {
        return "memory region";
    }
    struct ibv_qp_init_attr how = {
        .send_cq = line->queue,
        .recv_cq = line->queue,
        .cap = {.max_send_wr = line->depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    return (line->pair = ibv_create_qp(line->domain, &how)) == NULL ? "queue pair" : NULL;
}

int line_connect(Line *line, const Peer *peer)
{
    struct ibv_qp_attr how = {
        .qp_state = IBV_QPS_INIT,
        .port_num = (uint8_t)peer->port,
        .path_mtu = (enum ibv_mtu)peer->mtu,
        .dest_qp_num = peer->number,
        .rq_psn = peer->their_packet,
        .sq_psn = peer->our_packet,
        .max_rd_atomic = (uint8_t)peer->reads,
        .max_dest_rd_atomic = (uint8_t)peer->reads,
        .timeout = (uint8_t)peer->timeout,
        .retry_cnt = (uint8_t)peer->retries,
        .rnr_retry = (uint8_t)peer->retries,
        .ah_attr = {.is_global = 1,
                    .port_num = (uint8_t)peer->port,
                    .grh = {.dgid = peer->gid,
                            .sgid_index = (uint8_t)peer->gid_index,
                            .hop_limit = 64,
                            .traffic_class = (uint8_t)peer->traffic_class}},
    };
    /* Nobody reaches memory of this side: no access flags. */
    int error = ibv_modify_qp(line->pair, &how,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error == 0) {
        how.qp_state = IBV_QPS_RTR;
        error = ibv_modify_qp(line->pair, &how,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    }
    if (error == 0) {
        how.qp_state = IBV_QPS_RTS;
        error = ibv_modify_qp(line->pair, &how,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                  IBV_QP_MAX_QP_RD_ATOMIC);
    }
    return error;
}

static int post(Line *line, const Transfer *transfers, unsigned count)
{
    size_t at = 0;
    bool read_before = false;
    for (unsigned each = 0; each < count; each++) {
        const Transfer *transfer = &transfers[each];
        bool last = each + 1 == count;
        line->pieces[each] = (struct ibv_sge){
            .addr = (uintptr_t)(line->stage + at), .length = transfer->size, .lkey = line->region->lkey};
        line->works[each] = (struct ibv_send_wr){
            .wr_id = each,
            .next = last ? NULL : &line->works[each + 1],
            .sg_list = &line->pieces[each],
            .num_sge = 1,
            .opcode = transfer->is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
            .send_flags = last ? IBV_SEND_SIGNALED : 0,
            .wr.rdma = {.remote_addr = transfer->address, .rkey = transfer->rkey},
        };
        if (transfer->is_read) {
            read_before = true;
        } else {
            memcpy(line->stage + at, transfer->local, transfer->size);
            /* Without the fence a device may write before it has read for an earlier request. */
            line->works[each].send_flags |= read_before ? IBV_SEND_FENCE : 0;
        }
        at += transfer->size;
    }
    struct ibv_send_wr *bad;
    return ibv_post_send(line->pair, line->works, &bad);
}

/* Sleep until the channel has an event: 0, or why there is none. */
static int sleep_until_event(Line *line, int64_t ends)
{
    int64_t left_ms = (ends - now_ns() + 999999) / 1000000;
    struct pollfd news[] = {{.fd = line->channel->fd, .events = POLLIN},
                            {.fd = line->manager, .events = POLLIN},
                            {.fd = line->control, .events = POLLRDHUP}};
    int ready = 0;
    if (left_ms > 0) {
        ready = poll(news, sizeof news / sizeof *news, left_ms > 1000000 ? 1000000 : (int)left_ms);
    }
    if (ready < 0) {
        return errno == EINTR ? 0 : LINE_BROKEN;
    }
    if ((news[0].revents & POLLIN) == 0 || left_ms <= 0) {
        return ready > 0 ? LINE_HUNG_UP : LINE_SILENT;
    }
    struct ibv_cq *queue;
    void *ours;
    if (ibv_get_cq_event(line->channel, &queue, &ours) != 0) {
        return LINE_BROKEN;
    }
    ibv_ack_cq_events(queue, 1);
    return 0;
}

/* Wait for the next completion: 0, or why there is none. */
static int wait_for(Line *line, struct ibv_wc *completion, int64_t ends)
{
    for (;;) {
        int64_t begun = now_ns(), looked = 0;
        for (int looks = 0; looks < LOOKS_AT_LEAST || looked < LOOK_NS; looks++) {
            int found = ibv_poll_cq(line->queue, 1, completion);
            if (found != 0) {
                return found > 0 ? 0 : LINE_BROKEN;
            }
            looked = now_ns() - begun;
            if (line->alone || looked >= SPIN_NS) {
                sched_yield();
            }
        }
        if (ibv_req_notify_cq(line->queue, 0) != 0) {
            return LINE_BROKEN;
        }
        /* What ended before that brings no event. */
        int found = ibv_poll_cq(line->queue, 1, completion);
        if (found != 0) {
            return found > 0 ? 0 : LINE_BROKEN;
        }
        int status = sleep_until_event(line, ends);
        if (status != 0) {
            return status;
        }
    }
}

int line_carry_out(Line *line, const Transfer *transfers, unsigned count, double seconds, unsigned *done)
{
    struct ibv_wc completion;
    int64_t ends = now_ns() + (int64_t)(seconds * 1e9);
    *done = 0;
    int status = post(line, transfers, count) == 0 ? wait_for(line, &completion, ends) : LINE_BROKEN;
    if (status == 0) {
        status = (int)completion.status;
        *done = status == 0 ? count : (unsigned)completion.wr_id;
    }
    line->ended = status != 0;
    size_t at = 0;
    for (unsigned each = 0; each < *done; each++) {
        if (transfers[each].is_read) {
            memcpy(transfers[each].local, line->stage + at, transfers[each].size);
        }
        at += transfers[each].size;
    }
    return status;
}

unsigned line_time(Line *line, const Transfer *transfer, unsigned turns, double seconds, int64_t *ns)
{
    unsigned made = 0, done;
    int64_t begun = now_ns();
    while (made < turns && line_carry_out(line, transfer, 1, seconds, &done) == 0) {
        int64_t ended = now_ns();
        ns[made++] = ended - begun;
        begun = ended;
    }
    return made;
}

void line_close(Line *line)
{
    line->ended = true;
    if (line->pair != NULL) {
        ibv_destroy_qp(line->pair);
    }
    if (line->queue != NULL) {
        ibv_destroy_cq(line->queue);
    }
    if (line->channel != NULL) {
        ibv_destroy_comp_channel(line->channel);
    }
    if (line->region != NULL) {
        ibv_dereg_mr(line->region);
    }
    if (line->domain != NULL) {
        ibv_dealloc_pd(line->domain);
    }
    if (line->context != NULL) {
        ibv_close_device(line->context);
    }
    free(line->works);
    free(line->pieces);
    line->pair = NULL;
    line->queue = NULL;
    line->channel = NULL;
    line->region = NULL;
    line->domain = NULL;
    line->context = NULL;
    line->works = NULL;
    line->pieces = NULL;
}
