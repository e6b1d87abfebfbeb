/* The links of the whole process to lenders, by name: made while a lender is awake, used by all guests and block devices,
 * also when it sleeps and could be connected to no more. For the control thread only. */
#ifndef PONDSTACK_CONTROL_KEPT_LINKS_H
#define PONDSTACK_CONTROL_KEPT_LINKS_H

#include "../links/link.h"

enum { MOST_KEPT_LINKS = 256 };

struct kept_links {
    uint32_t count;
    struct link *list[MOST_KEPT_LINKS];
};

/* Connect to a lender, unless that is so already; one that was lost is connected to anew. */
int kept_links_connect(struct kept_links *kept, const char *name, json_t *ticket, uint32_t deadline_ms,
                       struct problem *problem);

/* Hang up; refused while anybody uses keys over it. One that is not there is no error. */
int kept_links_disconnect(struct kept_links *kept, const char *name, struct problem *problem);

/* The link to a lender; NULL: there is none, or it is lost. */
struct link *kept_links_find(const struct kept_links *kept, const char *name);

/* Now and then: tell which were lost, and let go of those that nobody uses any more. */
void kept_links_look(struct kept_links *kept);

json_t *kept_links_to_json(const struct kept_links *kept);

/* Let go of all. */
void kept_links_end(struct kept_links *kept);

#endif
