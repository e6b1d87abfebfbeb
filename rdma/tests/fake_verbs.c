/* A fake libibverbs: one device in memory, for tests of rdma/native where there is no RDMA device.
 *
 * It has one region of REGION_BYTES at ADDRESS, by the key GOOD. Other keys tell how the device behaves:
 * A queue pair that is connected to KEPT is destroyed at the second try only.
 * LATE completes only after the caller sleeps, SILENT never does, any other one is refused and breaks the queue pair.
 * Built together with rdma/native, in place of -libverbs.
 */
#include <infiniband/verbs.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REGION_BYTES = 65536, ADDRESS = 0x10000, GOOD = 7, LATE = 8, SILENT = 9, KEPT = 6, COMPLETIONS = 512 };

typedef struct {
    struct ibv_wc completions[COMPLETIONS];
    unsigned visible, hidden;
    bool armed, broken, kept;
    int event_fd;
} Fake;

static char region[REGION_BYTES];
static Fake fake;
static struct ibv_device device = {.name = "fake0"};
static struct ibv_context context;
static struct ibv_comp_channel channel;
static struct ibv_cq cq;
static struct ibv_qp qp = {.context = &context, .qp_num = 17};
static struct ibv_mr mr;
static struct ibv_pd pd;

static void complete(uint64_t wr_id, enum ibv_wc_status status, bool late)
{
    fake.completions[fake.visible + fake.hidden] = (struct ibv_wc){.wr_id = wr_id, .status = status};
    if (late || fake.hidden) {
        fake.hidden++;
    } else {
        fake.visible++;
    }
}

static enum ibv_wc_status transfer(const struct ibv_send_wr *wr)
{
    uint64_t at = wr->wr.rdma.remote_addr - ADDRESS, size = wr->sg_list[0].length;
    if (fake.broken) {
        return IBV_WC_WR_FLUSH_ERR;
    }
    if ((wr->wr.rdma.rkey != GOOD && wr->wr.rdma.rkey != LATE) || at > REGION_BYTES || size > REGION_BYTES - at) {
        fake.broken = true;
        return IBV_WC_REM_ACCESS_ERR;
    }
    char *local = (char *)(uintptr_t)wr->sg_list[0].addr;
    if (wr->opcode == IBV_WR_RDMA_READ) {
        memcpy(local, region + at, size);
    } else {
        memcpy(region + at, local, size);
    }
    return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *ours, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void)ours;
    (void)bad;
    for (; wr != NULL; wr = wr->next) {
        if (wr->wr.rdma.rkey == SILENT) {
            return 0;
        }
        enum ibv_wc_status status = transfer(wr);
        if (status != IBV_WC_SUCCESS || (wr->send_flags & IBV_SEND_SIGNALED)) {
            complete(wr->wr_id, status, wr->wr.rdma.rkey == LATE);
        }
    }
    return 0;
}

static int poll_cq(struct ibv_cq *ours, int most, struct ibv_wc *found)
{
    (void)ours;
    if (fake.visible == 0 || most < 1) {
        return 0;
    }
    *found = fake.completions[0];
    fake.visible--;
    memmove(fake.completions, fake.completions + 1, (fake.visible + fake.hidden) * sizeof *fake.completions);
    return 1;
}

static int req_notify_cq(struct ibv_cq *ours, int solicited)
{
    (void)ours;
    (void)solicited;
    if (fake.hidden && write(fake.event_fd, "e", 1) != 1) {
        return errno;
    }
    return 0;
}

struct ibv_device **ibv_get_device_list(int *count)
{
    (void)count;
    struct ibv_device **list = calloc(2, sizeof *list);
    if (list != NULL) {
        list[0] = &device;
    }
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *ours)
{
    return ours->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *ours)
{
    fake = (Fake){0};
    context = (struct ibv_context){.device = ours};
    context.ops.post_send = post_send;
    context.ops.poll_cq = poll_cq;
    context.ops.req_notify_cq = req_notify_cq;
    return &context;
}

int ibv_close_device(struct ibv_context *ours)
{
    (void)ours;
    return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ours)
{
    pd.context = ours;
    return &pd;
}

int ibv_dealloc_pd(struct ibv_pd *ours)
{
    (void)ours;
    return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ours)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return NULL;
    }
    fake.event_fd = ends[1];
    channel = (struct ibv_comp_channel){.context = ours, .fd = ends[0]};
    return &channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ours)
{
    close(fake.event_fd);
    close(ours->fd);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ours, int size, void *mine, struct ibv_comp_channel *to, int vector)
{
    (void)size;
    (void)vector;
    cq = (struct ibv_cq){.context = ours, .channel = to, .cq_context = mine};
    return &cq;
}

int ibv_destroy_cq(struct ibv_cq *ours)
{
    (void)ours;
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *from, struct ibv_cq **ours, void **mine)
{
    char event;
    *ours = &cq;
    *mine = cq.cq_context;
    if (read(from->fd, &event, 1) != 1) {
        return -1;
    }
    fake.visible += fake.hidden;
    fake.hidden = 0;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *ours, unsigned int count)
{
    (void)ours;
    (void)count;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *ours, void *address, size_t length, int access)
{
    (void)access;
    mr = (struct ibv_mr){.pd = ours, .addr = address, .length = length, .lkey = 3};
    return &mr;
}

int ibv_dereg_mr(struct ibv_mr *ours)
{
    (void)ours;
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *ours, struct ibv_qp_init_attr *attr)
{
    (void)ours;
    (void)attr;
    return &qp;
}

int ibv_destroy_qp(struct ibv_qp *ours)
{
    (void)ours;
    if (fake.kept) {
        fake.kept = false;
        return EBUSY;
    }
    return 0;
}

int ibv_modify_qp(struct ibv_qp *ours, struct ibv_qp_attr *attr, int mask)
{
    (void)ours;
    (void)mask;
    fake.kept = attr->dest_qp_num == KEPT;
    return attr->dest_qp_num == 0 ? ETIMEDOUT : 0;
}
