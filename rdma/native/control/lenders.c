#include "lenders.h"

#include <string.h>

static struct lender *find(struct lender *list, const char *name)
{
    while (list != NULL && strcmp(list->link->name, name) != 0) {
        list = list->next;
    }
    return list;
}

int lenders_lease(struct lender **list, struct leases *leases, const char *name, json_t *ticket, json_t *keys,
                  uint32_t deadline_ms, struct problem *problem)
{
    lenders_release(list, leases, false); /* one whose keys are left, because it was lost, is connected to anew */
    struct lender *lender = find(*list, name);
    size_t at;
    json_t *key;
    int result = 0;
    if (lender == NULL) {
        lender = lender_connect(name, ticket, deadline_ms, problem);
        if (lender == NULL) {
            return -1;
        }
        lender->next = *list;
        *list = lender;
    }
    json_array_foreach (keys, at, key) {
        result = result == 0 ? lender_lease(lender, key, leases, problem) : result;
    }
    return result;
}

bool lenders_leave(struct lender *list, const char *name, uint64_t number)
{
    struct lender *lender = find(list, name);
    return lender != NULL && lender_leave(lender, number);
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
