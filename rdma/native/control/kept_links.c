#include "kept_links.h"

#include <stdio.h>
#include <string.h>

/* Where it is in the list; `count`: nowhere. */
static uint32_t find(const struct kept_links *kept, const char *name)
{
    uint32_t at = 0;
    while (at < kept->count && strcmp(kept->list[at]->name, name) != 0) {
        at++;
    }
    return at;
}

static void drop(struct kept_links *kept, uint32_t at)
{
    struct link *link = kept->list[at];
    kept->list[at] = kept->list[--kept->count];
    link_end(link); /* whose leases are lost have it until they are left */
}

int kept_links_connect(struct kept_links *kept, const char *name, json_t *ticket, uint32_t deadline_ms,
                       struct problem *problem)
{
    uint32_t at = find(kept, name);
    if (at < kept->count && link_lives(kept->list[at])) {
        return 0;
    }
    if (at == MOST_KEPT_LINKS) {
        return problem_set(problem, "there are links to %d lenders already; disconnect some", MOST_KEPT_LINKS);
    }
    struct link *link = link_connect(name, ticket, deadline_ms, problem);
    if (link == NULL) {
        return -1;
    }
    link->kept = true;
    if (at < kept->count) {
        drop(kept, at);
    }
    kept->list[kept->count++] = link;
    return 0;
}

int kept_links_disconnect(struct kept_links *kept, const char *name, struct problem *problem)
{
    uint32_t at = find(kept, name);
    if (at == kept->count) {
        return 0;
    }
    if (kept->list[at]->uses > 1) {
        return problem_set(problem, "the link to lender %s is used by %u guests and block devices: leave its keys first",
                           name, kept->list[at]->uses - 1);
    }
    drop(kept, at);
    return 0;
}

struct link *kept_links_find(const struct kept_links *kept, const char *name)
{
    uint32_t at = find(kept, name);
    return at < kept->count && link_lives(kept->list[at]) ? kept->list[at] : NULL;
}

void kept_links_look(struct kept_links *kept)
{
    for (uint32_t at = kept->count; at > 0; at--) {
        struct link *link = kept->list[at - 1];
        bool known = link->lost;
        if (!link_lives(link) && !known) {
            fprintf(stderr, "lender %s: the link to it is lost\n", link->name);
        }
        if (link->lost && link->uses == 1) {
            drop(kept, at - 1);
        }
    }
}

json_t *kept_links_to_json(const struct kept_links *kept)
{
    json_t *list = json_array();
    for (uint32_t at = 0; at < kept->count; at++) {
        const struct link *link = kept->list[at];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I, s:I}", "lender", link->name, "driver",
                                              link->type->driver, "state", link->lost ? "lost" : "connected",
                                              "deadline_ms", (json_int_t)link->deadline_ms, "users",
                                              (json_int_t)link->uses - 1));
    }
    return list;
}

void kept_links_end(struct kept_links *kept)
{
    while (kept->count > 0) {
        drop(kept, kept->count - 1);
    }
}
