/* Questions to a lender's process over TCP, as pondstack_rdma/tcp/messages.py has them: two lengths, a JSON object, and
 * plain bytes, which questions have none of. For the control thread only. */
#ifndef PONDSTACK_LINKS_QUESTION_H
#define PONDSTACK_LINKS_QUESTION_H

#include "../store/problem.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { LENGTHS_BYTES = 8 };

/* The two lengths that begin a message, in network order. */
void lengths_pack(unsigned char packed[LENGTHS_BYTES], uint32_t header, uint32_t body);
void lengths_unpack(const unsigned char packed[LENGTHS_BYTES], uint32_t *header, uint32_t *body);

struct channel {
    int fd;
    const char *lender; /* its name, for texts */
    bool broken;        /* a late answer would be taken for the next question's */
};

/* Ask, and take the question; NULL and a problem where there is no answer in time, or it is a refusal. */
json_t *channel_ask(struct channel *channel, json_t *question, uint64_t ends_ns, struct problem *problem);

#endif
