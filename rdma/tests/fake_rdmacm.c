/* A fake librdmacm: connections within one process, for tests of rdma/native where there is no RDMA device.
 *
 * 127.0.0.1 leads to whoever listens; other addresses tell how the network behaves: 127.0.0.2 and .5 have no
 * device, nobody resolves 127.0.0.3, 127.0.0.4 never answers. As the kernel does it, closing one side tells the other, and private data
 * comes with zeros behind it. Events end at their acknowledgement; one that is missing ends the process.
 * Built together with rdma/native, in place of -lrdmacm.
 */
#define _GNU_SOURCE
#include <rdma/rdma_cma.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { IDS = 64, EVENTS = 256, FIRST_PORT = 40000, NOBODY_LISTENS = 8, REFUSED = 28, FOR_EVER_SECONDS = 60 };

typedef struct {
    struct rdma_cm_id id; /* first: librdmacm's callers know this part */
    struct sockaddr_in address;
    struct rdma_cm_id *peer;
    uint32_t qpn;
    unsigned max_rd_atomic, unacknowledged;
    bool listens;
} Fake;

static Fake *ids[IDS];
static struct rdma_cm_event *events[EVENTS];
static unsigned pending;
static uint16_t last_port = FIRST_PORT;
static struct ibv_device device = {.name = "fake0"};
static struct ibv_context context = {.device = &device};

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;

static pthread_mutex_t *enter(void)
{
    pthread_mutex_lock(&lock);
    return &lock;
}

static void leave(pthread_mutex_t **held)
{
    pthread_mutex_unlock(*held);
}

/* At the begin of a function: it has all to itself until it returns. */
#define ALONE __attribute__((cleanup(leave), unused)) pthread_mutex_t *alone = enter()

static Fake *fake_of(struct rdma_cm_id *id)
{
    return (Fake *)id;
}

static int failed(int error)
{
    errno = error;
    return -1;
}

static void tell(struct rdma_cm_id *id, enum rdma_cm_event_type kind, int status, const void *data, size_t size, size_t room)
{
    if (id == NULL || pending == EVENTS) {
        return;
    }
    struct rdma_cm_event *event = calloc(1, sizeof *event);
    char *copy = room ? calloc(1, room) : NULL;
    if (event == NULL || (room && copy == NULL)) {
        abort();
    }
    if (size) {
        memcpy(copy, data, size);
    }
    event->id = id;
    event->event = kind;
    event->status = status;
    event->param.conn.private_data = copy;
    event->param.conn.private_data_len = (uint8_t)room;
    events[pending++] = event;
    uint64_t one = 1;
    if (write(id->channel->fd, &one, sizeof one) != sizeof one) {
        abort();
    }
}

static void drop(struct rdma_cm_event *event)
{
    free((void *)(uintptr_t)event->param.conn.private_data);
    free(event);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct rdma_event_channel *made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->fd = eventfd(0, EFD_SEMAPHORE);
    }
    return made;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    close(channel->fd);
    free(channel);
}

static Fake *new_id(struct rdma_event_channel *channel, void *mine)
{
    for (unsigned at = 0; at < IDS; at++) {
        if (ids[at] == NULL) {
            ids[at] = calloc(1, sizeof **ids);
            if (ids[at] != NULL) {
                ids[at]->id.channel = channel;
                ids[at]->id.context = mine;
            }
            return ids[at];
        }
    }
    return NULL;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *mine, enum rdma_port_space space)
{
    ALONE;
    Fake *made = space == RDMA_PS_TCP ? new_id(channel, mine) : NULL;
    if (made == NULL) {
        return failed(ENOMEM);
    }
    *id = &made->id;
    return 0;
}

/* As librdmacm does: for another thread's event, which it is about to acknowledge. One of the caller's own would keep
 * it for ever. */
static void wait_until_acknowledged(const Fake *fake)
{
    struct timespec ends;
    clock_gettime(CLOCK_REALTIME, &ends);
    ends.tv_sec += FOR_EVER_SECONDS;
    while (fake->unacknowledged) {
        if (pthread_cond_timedwait(&acknowledged, &lock, &ends) != 0) {
            abort();
        }
    }
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
    ALONE;
    Fake *fake = fake_of(id);
    wait_until_acknowledged(fake);
    for (unsigned at = 0; at < pending;) {
        if (events[at]->id != id) {
            at++;
            continue;
        }
        uint64_t one;
        if (read(id->channel->fd, &one, sizeof one) != sizeof one) {
            abort();
        }
        drop(events[at]);
        memmove(&events[at], &events[at + 1], (--pending - at) * sizeof *events);
    }
    if (fake->peer != NULL) {
        fake_of(fake->peer)->peer = NULL;
        tell(fake->peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0, 0);
    }
    for (unsigned at = 0; at < IDS; at++) {
        ids[at] = ids[at] == fake ? NULL : ids[at];
    }
    free(fake);
    return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
    ALONE;
    Fake *fake = fake_of(id);
    fake->address = *(struct sockaddr_in *)address;
    if (ntohl(fake->address.sin_addr.s_addr) != INADDR_LOOPBACK) {
        return failed(EADDRNOTAVAIL);
    }
    fake->address.sin_port = htons(++last_port);
    id->verbs = &context;
    return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
    ALONE;
    fake_of(id)->listens = true;
    return backlog > 0 ? 0 : failed(EINVAL);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int milliseconds)
{
    ALONE;
    (void)from;
    (void)milliseconds;
    Fake *fake = fake_of(id);
    fake->address = *(struct sockaddr_in *)to;
    switch (ntohl(fake->address.sin_addr.s_addr) & 0xff) {
    case 1:
        id->verbs = &context;
        tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0, 0);
        return 0;
    case 2:
        tell(id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, NULL, 0, 0);
        return 0;
    case 3:
        return failed(ENETUNREACH);
    case 5:
        return failed(ENODEV);
    }
    return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int milliseconds)
{
    ALONE;
    (void)milliseconds;
    tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0, 0);
    return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    ALONE;
    Fake *fake = fake_of(id);
    if (fake->peer != NULL) {
        return failed(EINVAL);
    }
    fake->qpn = param->qp_num;
    fake->max_rd_atomic = 16;
    for (unsigned at = 0; at < IDS; at++) {
        if (ids[at] != NULL && ids[at]->listens && ids[at]->address.sin_port == fake->address.sin_port) {
            Fake *made = new_id(ids[at]->id.channel, ids[at]->id.context);
            if (made == NULL) {
                return failed(ENOMEM);
            }
            made->id.verbs = &context;
            made->peer = id;
            made->max_rd_atomic = fake->max_rd_atomic;
            fake->peer = &made->id;
            tell(&made->id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, param->private_data, param->private_data_len, 56);
            return 0;
        }
    }
    tell(id, RDMA_CM_EVENT_REJECTED, NOBODY_LISTENS, NULL, 0, 148);
    return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    ALONE;
    Fake *fake = fake_of(id);
    if (fake->peer == NULL) {
        return failed(EINVAL);
    }
    fake->qpn = param->qp_num;
    fake_of(fake->peer)->max_rd_atomic = param->responder_resources;
    tell(fake->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, param->private_data, param->private_data_len, 196);
    return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t size)
{
    ALONE;
    Fake *fake = fake_of(id);
    if (fake->peer == NULL) {
        return failed(EINVAL);
    }
    fake_of(fake->peer)->peer = NULL;
    tell(fake->peer, RDMA_CM_EVENT_REJECTED, REFUSED, data, size, 148);
    fake->peer = NULL;
    return 0;
}

int rdma_establish(struct rdma_cm_id *id)
{
    ALONE;
    struct rdma_cm_id *peer = fake_of(id)->peer;
    tell(peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0, 0);
    return peer == NULL ? failed(EINVAL) : 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *found, int *mask)
{
    ALONE;
    const Fake *fake = fake_of(id);
    if (fake->peer == NULL) {
        return failed(EINVAL);
    }
    const struct in6_addr gid = IN6ADDR_LOOPBACK_INIT;
    *mask = 0;
    found->port_num = 1;
    found->path_mtu = IBV_MTU_1024;
    found->dest_qp_num = fake_of(fake->peer)->qpn;
    found->rq_psn = 11;
    found->sq_psn = 12;
    found->max_rd_atomic = found->max_dest_rd_atomic = (uint8_t)fake->max_rd_atomic;
    found->ah_attr.grh.sgid_index = 3;
    found->ah_attr.grh.traffic_class = 104;
    memcpy(found->ah_attr.grh.dgid.raw, &gid, sizeof gid);
    return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    ALONE;
    uint64_t one;
    if (read(channel->fd, &one, sizeof one) != sizeof one) {
        return -1;
    }
    for (unsigned at = 0; at < pending; at++) {
        if (events[at]->id->channel == channel) {
            *event = events[at];
            memmove(&events[at], &events[at + 1], (--pending - at) * sizeof *events);
            fake_of((*event)->id)->unacknowledged++;
            return 0;
        }
    }
    abort();
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    ALONE;
    fake_of(event->id)->unacknowledged--;
    pthread_cond_broadcast(&acknowledged);
    drop(event);
    return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return fake_of(id)->address.sin_port;
}

/* Weak: a program may have the fake device beside it. */
__attribute__((weak)) const char *ibv_get_device_name(struct ibv_device *ours)
{
    return ours->name;
}
