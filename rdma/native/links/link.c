#define _GNU_SOURCE
#include "link.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct link_type *const types[] = {&shm_link, &tcp_link, &verbs_link};

static const struct link_type *type_named(const char *driver)
{
    for (size_t at = 0; at < sizeof types / sizeof *types; at++) {
        if (strcmp(types[at]->driver, driver) == 0) {
            return types[at];
        }
    }
    return NULL;
}

struct link *link_connect(const char *name, json_t *ticket, uint32_t deadline_ms, struct problem *problem)
{
    struct ticket shown = {.json = ticket};
    json_error_t error;
    if (json_unpack_ex(ticket, &error, 0, "{s:s, s:s, s:s, s:s}", "driver", &shown.driver, "address", &shown.address,
                       "borrower", &shown.borrower, "secret", &shown.secret) != 0) {
        problem_set(problem, "ticket: %s", error.text);
        return NULL;
    }
    const struct link_type *type = type_named(shown.driver);
    if (type == NULL) {
        problem_set(problem, "ticket: lenders of the driver %.20s are not supported; only shm, tcp, verbs are",
                    shown.driver);
        return NULL;
    }
    struct link *link = calloc(1, type->bytes);
    if (link == NULL) {
        problem_set(problem, "no memory for a link");
        return NULL;
    }
    link->type = type;
    link->uses = 1;
    link->deadline_ms = deadline_ms;
    link->answer_ms = deadline_ms > DEADLINE_MS ? deadline_ms : DEADLINE_MS;
    snprintf(link->name, sizeof link->name, "%s", name);
    if (type->connect(link, &shown, problem) != 0) {
        link_end(link);
        return NULL;
    }
    return link;
}

struct tier *link_open(struct link *link, const struct key *key, struct problem *problem)
{
    return link->type->open(link, key, problem);
}

bool link_lives(struct link *link)
{
    link->lost = link->lost || !link->type->lives(link);
    return !link->lost;
}

struct link *link_share(struct link *link)
{
    link->uses++;
    return link;
}

void link_end(struct link *link)
{
    link->uses--;
    if (link->uses == 0) {
        link->type->end(link);
        free(link);
    }
}

bool link_hung_up(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLRDHUP};
    return poll(&one, 1, 0) > 0;
}
