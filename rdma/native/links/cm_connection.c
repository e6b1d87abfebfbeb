#define _GNU_SOURCE
#include "cm_connection.h"

#include "address.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

enum { NS_PER_MS = 1000000, NOBODY_LISTENS = 8, REFUSED_BY_LENDER = 28 };

/* An event, after its acknowledgement. */
struct event {
    enum rdma_cm_event_type kind;
    int status;
    unsigned char data[RESPONSE_BYTES + 1]; /* zeros follow */
};

static int left_ms(const struct cm_connection *connection)
{
    uint64_t now = wire_now_ns();
    return now >= connection->ends_ns ? 0 : (int)((connection->ends_ns - now) / NS_PER_MS) + 1;
}

static int no_lender(const struct cm_connection *connection, const char *why, struct problem *problem)
{
    return problem_set(problem, "lender %s cannot be reached at %s: %s; see whether its agent runs",
                       connection->lender, connection->address, why);
}

static int no_device(const struct cm_connection *connection, struct problem *problem)
{
    return problem_set(problem,
                       "lender %s: no RDMA device of this host leads to %s; see `rdma link` and "
                       "/sys/class/infiniband/*/ports/*/gids",
                       connection->lender, connection->address);
}

static int timed_out(const struct cm_connection *connection, enum rdma_cm_event_type wanted, struct problem *problem)
{
    const char *step = wanted == RDMA_CM_EVENT_ADDR_RESOLVED    ? "its address is not resolved"
                       : wanted == RDMA_CM_EVENT_ROUTE_RESOLVED ? "there is no route"
                                                                : "no connection";
    return problem_set(problem, "lender %s does not answer at %s: %s; see whether its host is suspended, or frozen",
                       connection->lender, connection->address, step);
}

/* Wait for the next event. */
static int next_event(struct cm_connection *connection, enum rdma_cm_event_type wanted, struct event *found,
                      struct problem *problem)
{
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(connection->channel, &event) != 0) {
        if (errno != EAGAIN && errno != EINTR) {
            return no_lender(connection, strerror(errno), problem);
        }
        struct pollfd fd = {.fd = connection->channel->fd, .events = POLLIN};
        int left = left_ms(connection);
        if (left == 0) {
            return timed_out(connection, wanted, problem);
        }
        (void)poll(&fd, 1, left);
    }
    const struct rdma_conn_param *param = &event->param.conn;
    *found = (struct event){.kind = event->event, .status = event->status};
    if (param->private_data != NULL) {
        size_t size = param->private_data_len;
        memcpy(found->data, param->private_data, size < RESPONSE_BYTES ? size : RESPONSE_BYTES);
    }
    rdma_ack_cm_event(event);
    return 0;
}

/* A refusal has the error's code, a zero, and the start of its text. */
static int refused(const struct cm_connection *connection, const struct event *event, struct problem *problem)
{
    const char *code = (const char *)event->data;
    const char *text = code + strnlen(code, RESPONSE_BYTES);
    return problem_set(problem, "lender %s refuses: %s", connection->lender, text[1] != '\0' ? text + 1 : code);
}

static int failure(const struct cm_connection *connection, enum rdma_cm_event_type wanted, const struct event *event,
                   struct problem *problem)
{
    if (event->kind == RDMA_CM_EVENT_REJECTED && event->status == REFUSED_BY_LENDER) {
        return refused(connection, event, problem);
    }
    if (event->kind == RDMA_CM_EVENT_REJECTED && event->status == NOBODY_LISTENS) {
        return no_lender(connection, "nobody listens", problem);
    }
    if (event->status == -ETIMEDOUT) {
        return timed_out(connection, wanted, problem);
    }
    if (event->kind == RDMA_CM_EVENT_ADDR_ERROR && event->status == -ENODEV) {
        return no_device(connection, problem);
    }
    return problem_set(problem, "lender %s: no connection to %s: event %d, status %d; see `rdma link` at both sides",
                       connection->lender, connection->address, (int)event->kind, event->status);
}

static int await(struct cm_connection *connection, enum rdma_cm_event_type wanted, struct event *event,
                 struct problem *problem)
{
    if (next_event(connection, wanted, event, problem) != 0) {
        return -1;
    }
    return event->kind == wanted ? 0 : failure(connection, wanted, event, problem);
}

/* What a call of librdmacm has not begun. */
static int failed_call(const struct cm_connection *connection, struct problem *problem)
{
    return errno == ENODEV ? no_device(connection, problem) : no_lender(connection, strerror(errno), problem);
}

int cm_connection_resolve(struct cm_connection *connection, struct problem *problem)
{
    char host[HOST_BYTES];
    int port;
    struct event event;
    struct sockaddr_storage to;
    if (address_split(connection->address, host, &port) != 0 || address_of(host, port, &to) != 0) {
        return no_lender(connection, "this is no address and port", problem);
    }
    connection->channel = rdma_create_event_channel();
    if (connection->channel == NULL || fcntl(connection->channel->fd, F_SETFL, O_NONBLOCK) != 0 ||
        rdma_create_id(connection->channel, &connection->id, NULL, RDMA_PS_TCP) != 0) {
        return problem_set(problem, "librdmacm finds no device to connect by: %s; see `rdma link`, and `modprobe rdma_ucm`",
                           strerror(errno));
    }
    if (rdma_resolve_addr(connection->id, NULL, (struct sockaddr *)&to, left_ms(connection)) != 0) {
        return failed_call(connection, problem);
    }
    if (await(connection, RDMA_CM_EVENT_ADDR_RESOLVED, &event, problem) != 0) {
        return -1;
    }
    if (rdma_resolve_route(connection->id, left_ms(connection)) != 0) {
        return failed_call(connection, problem);
    }
    return await(connection, RDMA_CM_EVENT_ROUTE_RESOLVED, &event, problem);
}

const char *cm_connection_device(const struct cm_connection *connection)
{
    return ibv_get_device_name(connection->id->verbs->device);
}

int cm_connection_request(struct cm_connection *connection, uint32_t qpn, const void *data, size_t size,
                          unsigned char response[RESPONSE_BYTES], struct problem *problem)
{
    struct event event;
    if (send_request(connection->id, qpn, data, size) != 0) {
        return failed_call(connection, problem);
    }
    if (await(connection, RDMA_CM_EVENT_CONNECT_RESPONSE, &event, problem) != 0) {
        return -1;
    }
    memcpy(response, event.data, RESPONSE_BYTES);
    return 0;
}

int cm_connection_establish(struct cm_connection *connection, struct problem *problem)
{
    return rdma_establish(connection->id) == 0 ? 0 : failed_call(connection, problem);
}

void cm_connection_close(struct cm_connection *connection)
{
    if (connection->id != NULL) {
        rdma_destroy_id(connection->id); /* tells the lender, if it has accepted */
        connection->id = NULL;
    }
    if (connection->channel != NULL) {
        rdma_destroy_event_channel(connection->channel);
        connection->channel = NULL;
    }
}
