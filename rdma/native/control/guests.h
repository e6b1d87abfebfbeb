/* The guests of this process, the block devices and the links to lenders beside them, and their records. For the control thread only. */
#ifndef PONDSTACK_CONTROL_GUESTS_H
#define PONDSTACK_CONTROL_GUESTS_H

#include "blocks.h"
#include "guest.h"
#include "kept_links.h"

#include <sys/types.h>

enum { MOST_GUESTS = 256 };

/* Whom besides root this process serves, and in what folder it makes their mirrors. NULL: nobody; anywhere. */
struct client {
    const char *mirrors;
    uid_t user;
};

struct guests {
    const char *folder;
    struct client client;
    uint32_t count;
    struct guest *list[MOST_GUESTS];
    struct blocks blocks;
    struct kept_links links;
};

/* Go on with all that have a record. */
void guests_begin(struct guests *guests, const char *folder, const struct client *client);

struct guest *guests_find(const struct guests *guests, const char *guest);

/* Whether a guest may be attached: where a client is served that may do less than root, its mirror is a file of that
 * folder, and the process says itself that it is this guest, as QEMU does (-uuid). */
bool guests_allow(const struct guests *guests, const struct guest_settings *settings, struct problem *problem);

/* The same of a block device: also its socket is one of its own in the folder of this process. */
bool guests_allow_block(const struct guests *guests, const struct block_settings *settings, struct problem *problem);

/* Attach a guest, which gets a record; the same settings again are no error. */
int guests_attach(struct guests *guests, const struct guest_settings *settings, struct problem *problem);

/* Change the limit of a guest, or have its pages come home; its record first. */
int guests_set_limit(struct guests *guests, struct guest *guest, uint32_t limit_mib, struct problem *problem);
int guests_detach(struct guests *guests, struct guest *guest, struct problem *problem);

/* Now and then: see who has ended, and try again what failed. */
void guests_look(struct guests *guests);

/* Stop serving all. */
void guests_end(struct guests *guests);

#endif
