/* The attributes of a connection by librdmacm, and the calls that take more than one line. No Python in here. */
#ifndef PONDSTACK_CM_ATTRS_H
#define PONDSTACK_CM_ATTRS_H

#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>

/* The attributes that librdmacm chose for a queue pair; units and names are those of ibv_qp_attr. */
typedef struct {
    union ibv_gid dgid;
    uint32_t dest_qpn, rq_psn, sq_psn;
    unsigned port_num, sgid_index, path_mtu, max_rd_atomic, traffic_class;
} CmAttrs;

/* Read the attributes, after a connection request or a response. Return 0 or an errno. `max_rd_atomic` is the lower one of
 * the limits for outgoing and for incoming reads. */
int cm_attrs_of(struct rdma_cm_id *id, CmAttrs *attrs);

/* Each sends one CM message with private data. Return 0, or -1 with errno. */
int send_request(struct rdma_cm_id *id, uint32_t qpn, const void *data, size_t size);
int send_reply(struct rdma_cm_id *id, uint32_t qpn, unsigned max_rd_atomic, const void *data, size_t size);

#endif
