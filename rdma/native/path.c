/* Queue pairs are made and moved by their owners, not by librdmacm: a lender's belongs to the protection domain of its
 * borrower, in a device that pyverbs has opened. So the manager is asked what it would set, and told their numbers.
 */
#define _GNU_SOURCE
#include "path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

int address_of(const char *text, int port, struct sockaddr_storage *address)
{
    struct addrinfo *found, how = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    char number[16];
    snprintf(number, sizeof number, "%d", port);
    if (port < 0 || port > UINT16_MAX || getaddrinfo(text, number, &how, &found) != 0) {
        return EINVAL;
    }
    *address = (struct sockaddr_storage){0};
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

static int attributes(struct rdma_cm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *found)
{
    int mask;
    *found = (struct ibv_qp_attr){.qp_state = state};
    return rdma_init_qp_attr(id, found, &mask) == 0 ? 0 : errno;
}

int path_of(struct rdma_cm_id *id, Path *path)
{
    struct ibv_qp_attr first, receives, sends;
    int error = attributes(id, IBV_QPS_INIT, &first);
    if (error == 0) {
        error = attributes(id, IBV_QPS_RTR, &receives);
    }
    if (error == 0) {
        error = attributes(id, IBV_QPS_RTS, &sends);
    }
    if (error == 0) {
        const struct ibv_global_route *route = &receives.ah_attr.grh;
        *path = (Path){
            .gid = route->dgid,
            .number = receives.dest_qp_num,
            .their_packet = receives.rq_psn,
            .our_packet = sends.sq_psn,
            .port = first.port_num,
            .gid_index = route->sgid_index,
            .mtu = receives.path_mtu,
            .reads = receives.max_dest_rd_atomic < sends.max_rd_atomic ? receives.max_dest_rd_atomic
                                                                       : sends.max_rd_atomic,
            .traffic_class = route->traffic_class,
        };
    }
    return error;
}

int send_request(struct rdma_cm_id *id, uint32_t number, const void *data, size_t size)
{
    struct rdma_conn_param how = {
        .private_data = data,
        .private_data_len = (uint8_t)size,
        .responder_resources = RDMA_MAX_RESP_RES,
        .initiator_depth = RDMA_MAX_INIT_DEPTH,
        .retry_count = 6, /* some devices take 7 as endless */
        .rnr_retry_count = 6,
        .qp_num = number,
    };
    return rdma_connect(id, &how);
}

int send_reply(struct rdma_cm_id *id, uint32_t number, unsigned reads, const void *data, size_t size)
{
    struct rdma_conn_param how = {
        .private_data = data,
        .private_data_len = (uint8_t)size,
        .responder_resources = (uint8_t)reads,
        .initiator_depth = (uint8_t)reads,
        .rnr_retry_count = 6,
        .qp_num = number,
    };
    return rdma_accept(id, &how);
}
