#define _GNU_SOURCE
#include "question.h"

#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ANSWER_BYTES = 65536 };

void lengths_pack(unsigned char packed[LENGTHS_BYTES], uint32_t header, uint32_t body)
{
    uint32_t words[] = {htonl(header), htonl(body)};
    memcpy(packed, words, sizeof words);
}

void lengths_unpack(const unsigned char packed[LENGTHS_BYTES], uint32_t *header, uint32_t *body)
{
    uint32_t words[2];
    memcpy(words, packed, sizeof words);
    *header = ntohl(words[0]);
    *body = ntohl(words[1]);
}

static int send_question(const struct channel *channel, json_t *question, uint64_t ends_ns)
{
    unsigned char lengths[LENGTHS_BYTES];
    char *text = json_dumps(question, JSON_COMPACT);
    if (text == NULL) {
        return ENOMEM;
    }
    lengths_pack(lengths, (uint32_t)strlen(text), 0);
    int error = wire_send(channel->fd, lengths, sizeof lengths, ends_ns);
    error = error != 0 ? error : wire_send(channel->fd, text, strlen(text), ends_ns);
    free(text);
    return error;
}

static int receive_answer(const struct channel *channel, json_t **answer, uint64_t ends_ns)
{
    unsigned char lengths[LENGTHS_BYTES];
    uint32_t header, body;
    int error = wire_receive(channel->fd, lengths, sizeof lengths, ends_ns);
    if (error != 0) {
        return error;
    }
    lengths_unpack(lengths, &header, &body);
    if (header > MOST_ANSWER_BYTES || body != 0) {
        return EPROTO;
    }
    char *text = malloc((size_t)header + 1);
    error = text == NULL ? ENOMEM : wire_receive(channel->fd, text, header, ends_ns);
    if (error == 0) {
        *answer = json_loadb(text, header, 0, NULL);
        error = json_is_object(*answer) ? 0 : EPROTO;
    }
    free(text);
    return error;
}

json_t *channel_ask(struct channel *channel, json_t *question, uint64_t ends_ns, struct problem *problem)
{
    json_t *answer = NULL, *refused;
    int error = channel->broken ? EPIPE : question == NULL ? ENOMEM : send_question(channel, question, ends_ns);
    error = error != 0 ? error : receive_answer(channel, &answer, ends_ns);
    json_decref(question);
    if (error != 0) {
        problem_set(problem, "lender %s does not answer: %s", channel->lender, strerror(error));
        channel->broken = true;
    } else if ((refused = json_object_get(answer, "error")) != NULL) {
        const char *reason = json_string_value(json_object_get(refused, "text"));
        problem_set(problem, "lender %s refuses: %s", channel->lender, reason == NULL ? "" : reason);
        error = EACCES;
    }
    if (error != 0) {
        json_decref(answer);
        answer = NULL;
    }
    return answer;
}
