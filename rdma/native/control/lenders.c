#include "lenders.h"

#include <string.h>

/* The next lender of that name, from `lender` on; a guest may have links of both kinds to one. */
static struct lender *named(struct lender *lender, const char *name)
{
    while (lender != NULL && strcmp(lender->link->name, name) != 0) {
        lender = lender->next;
    }
    return lender;
}

static struct lender *user_of(struct lender *list, const char *name, uint64_t number)
{
    struct lender *lender = named(list, name);
    while (lender != NULL && lender_window(lender, number) == NULL) {
        lender = named(lender->next, name);
    }
    return lender;
}

/* Over the process's link, or one of the consumer's own. */
static struct link *connect_to(const struct lease_request *request, bool kept, struct problem *problem)
{
    if (kept) {
        return link_share(request->kept);
    }
    if (request->ticket == NULL) {
        problem_set(problem, "ticket: there is no link to lender %s, or a key does not say where its region is",
                    request->lender);
        return NULL;
    }
    return link_connect(request->lender, request->ticket, request->deadline_ms, problem);
}

/* The lender to show a key to, which is connected to where it was not. */
static struct lender *lender_for(struct lender **list, const struct lease_request *request, bool kept,
                                 struct problem *problem)
{
    struct lender *lender = named(*list, request->lender);
    while (lender != NULL && (kept ? lender->link != request->kept : lender->link->kept)) {
        lender = named(lender->next, request->lender);
    }
    if (lender == NULL) {
        struct link *link = connect_to(request, kept, problem);
        lender = link == NULL ? NULL : lender_make(link, problem);
        if (lender != NULL) {
            lender->next = *list;
            *list = lender;
        }
    }
    return lender;
}

int lenders_lease(struct lender **list, struct leases *leases, const struct lease_request *request,
                  struct problem *problem)
{
    size_t at;
    json_t *key;
    lenders_release(list, leases, false); /* one whose keys are left, because it was lost, is connected to anew */
    json_array_foreach (request->keys, at, key) {
        uint64_t number = (uint64_t)json_integer_value(json_object_get(key, "number"));
        struct lender *lender = user_of(*list, request->lender, number);
        if (lender == NULL) {
            lender = lender_for(list, request, request->kept != NULL && key_is_located(key), problem);
        }
        if (lender == NULL || lender_lease(lender, key, request->hands, leases, problem) != 0) {
            return -1;
        }
    }
    return 0;
}

bool lenders_leave(struct lender *list, const char *name, uint64_t number)
{
    struct lender *lender = user_of(list, name, number);
    return lender != NULL && lender_leave(lender, number);
}

void lenders_leave_handed(struct lender *list)
{
    for (; list != NULL; list = list->next) {
        for (struct window *window = list->windows; window != NULL; window = window->next) {
            int handed = LEASE_HANDED;
            atomic_compare_exchange_strong(&window->lease->state, &handed, LEASE_LEAVING);
        }
    }
}

void lenders_look(struct lender *list)
{
    for (struct lender *lender = list; lender != NULL; lender = lender->next) {
        lender_look(lender);
    }
}

void lenders_release(struct lender **list, struct leases *leases, bool all)
{
    for (struct lender **at = list; *at != NULL;) {
        struct lender *lender = *at;
        lender_release(lender, leases, all);
        if (lender->windows == NULL) {
            *at = lender->next;
            lender_end(lender);
        } else {
            at = &lender->next;
        }
    }
}
