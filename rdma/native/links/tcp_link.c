/* A lender over TCP: one connection by which the control thread shows keys, and one by which pages are moved, so that
 * nobody who waits for a page waits for an answer about a key. */
#define _GNU_SOURCE
#include "address.h"
#include "link.h"
#include "question.h"
#include "tcp_tier.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tcp_link {
    struct link link;
    struct channel keys;
    struct tcp_mover mover;
};

/* Connect, and show the ticket; the socket, or -1 and a problem. */
static int dial(struct link *link, const struct ticket *ticket, uint64_t ends_ns, struct problem *problem)
{
    char host[HOST_BYTES];
    int port, error = address_split(ticket->address, host, &port);
    struct channel channel = {.fd = error == 0 ? wire_socket(host) : -1, .lender = link->name};
    error = error == 0 && channel.fd < 0 ? errno : error;
    error = error != 0 ? error : wire_connect(channel.fd, host, port, ends_ns);
    if (error != 0) {
        problem_set(problem, "lender %s cannot be reached at %s: %s", link->name, ticket->address, strerror(error));
    }
    json_t *answer = error != 0 ? NULL : channel_ask(&channel, json_incref(ticket->json), ends_ns, problem);
    json_decref(answer);
    if (answer == NULL && channel.fd >= 0) {
        close(channel.fd);
        channel.fd = -1;
    }
    return channel.fd;
}

static int tcp_connect(struct link *link, const struct ticket *ticket, struct problem *problem)
{
    struct tcp_link *tcp = (struct tcp_link *)link;
    uint64_t ends_ns = wire_deadline(link->answer_ms);
    pthread_mutex_init(&tcp->mover.turn, NULL);
    tcp->keys = (struct channel){.fd = dial(link, ticket, ends_ns, problem), .lender = link->name};
    tcp->mover.fd = tcp->keys.fd < 0 ? -1 : dial(link, ticket, ends_ns, problem);
    tcp->mover.deadline_ms = link->deadline_ms;
    return tcp->mover.fd < 0 ? -1 : 0;
}

/* Have the lender look at the key, by a read of nothing. */
static bool is_served(struct tcp_link *tcp, const struct key *key, struct problem *problem)
{
    json_t *operation = json_pack("{s:b, s:O, s:i, s:i}", "write", 0, "key", key->json, "offset", 0, "length", 0);
    json_t *answer = channel_ask(&tcp->keys, json_pack("{s:[o]}", "operations", operation),
                                 wire_deadline(tcp->link.answer_ms), problem);
    json_decref(answer);
    return answer != NULL;
}

static struct tier *tcp_open(struct link *link, const struct key *key, struct problem *problem)
{
    struct tcp_link *tcp = (struct tcp_link *)link;
    char *text = json_dumps(key->json, JSON_COMPACT);
    struct tcp_tier *made = NULL;
    if (text == NULL || strlen(text) >= TCP_KEY_BYTES) {
        problem_set(problem, "key: less than %d bytes of JSON are needed", TCP_KEY_BYTES);
    } else if (key->location != NULL || is_served(tcp, key, problem)) {
        made = malloc(sizeof *made);
        if (made != NULL) {
            tcp_tier_begin(made, &tcp->mover, key->slots, text);
        }
    }
    free(text);
    return made == NULL ? NULL : &made->tier;
}

static bool tcp_lives(struct link *link)
{
    struct tcp_link *tcp = (struct tcp_link *)link;
    return !tcp->mover.ended && !link_hung_up(tcp->mover.fd);
}

static void tcp_end(struct link *link)
{
    struct tcp_link *tcp = (struct tcp_link *)link;
    if (tcp->keys.fd >= 0) {
        close(tcp->keys.fd);
    }
    if (tcp->mover.fd >= 0) {
        close(tcp->mover.fd);
    }
    pthread_mutex_destroy(&tcp->mover.turn);
}

const struct link_type tcp_link = {
    .driver = "tcp", .bytes = sizeof(struct tcp_link), .connect = tcp_connect, .open = tcp_open, .lives = tcp_lives,
    .end = tcp_end};
