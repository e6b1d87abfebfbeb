/* The callers create and modify queue pairs, not librdmacm: a lender's queue pair belongs to the protection domain of its
 * borrower, on a device that pyverbs has opened. So librdmacm only says which attributes it would set, and gets the QPN.
 */
#define _GNU_SOURCE
#include "cm_attrs.h"

#include <errno.h>

static int qp_attr_in(struct rdma_cm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *found)
{
    int mask;
    *found = (struct ibv_qp_attr){.qp_state = state};
    return rdma_init_qp_attr(id, found, &mask) == 0 ? 0 : errno;
}

int cm_attrs_of(struct rdma_cm_id *id, CmAttrs *attrs)
{
    struct ibv_qp_attr init, rtr, rts;
    int error = qp_attr_in(id, IBV_QPS_INIT, &init);
    if (error == 0) {
        error = qp_attr_in(id, IBV_QPS_RTR, &rtr);
    }
    if (error == 0) {
        error = qp_attr_in(id, IBV_QPS_RTS, &rts);
    }
    if (error == 0) {
        const struct ibv_global_route *grh = &rtr.ah_attr.grh;
        *attrs = (CmAttrs){
            .dgid = grh->dgid,
            .dest_qpn = rtr.dest_qp_num,
            .rq_psn = rtr.rq_psn,
            .sq_psn = rts.sq_psn,
            .port_num = init.port_num,
            .sgid_index = grh->sgid_index,
            .path_mtu = rtr.path_mtu,
            .max_rd_atomic = rtr.max_dest_rd_atomic < rts.max_rd_atomic ? rtr.max_dest_rd_atomic : rts.max_rd_atomic,
            .traffic_class = grh->traffic_class,
        };
    }
    return error;
}

int send_request(struct rdma_cm_id *id, uint32_t qpn, const void *data, size_t size)
{
    struct rdma_conn_param param = {
        .private_data = data,
        .private_data_len = (uint8_t)size,
        .responder_resources = RDMA_MAX_RESP_RES,
        .initiator_depth = RDMA_MAX_INIT_DEPTH,
        .retry_count = 6, /* some devices retry for ever with 7 */
        .rnr_retry_count = 6,
        .qp_num = qpn,
    };
    return rdma_connect(id, &param);
}

int send_reply(struct rdma_cm_id *id, uint32_t qpn, unsigned max_rd_atomic, const void *data, size_t size)
{
    struct rdma_conn_param param = {
        .private_data = data,
        .private_data_len = (uint8_t)size,
        .responder_resources = (uint8_t)max_rd_atomic,
        .initiator_depth = (uint8_t)max_rd_atomic,
        .rnr_retry_count = 6,
        .qp_num = qpn,
    };
    return rdma_accept(id, &param);
}
