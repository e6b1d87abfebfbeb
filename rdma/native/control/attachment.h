/* What an attachment needs of a guest's process: its memory, its shared state and its userfaultfd, which it holds.
 *
 * They outlive this process. For the control thread only. */
#ifndef PONDSTACK_CONTROL_ATTACHMENT_H
#define PONDSTACK_CONTROL_ATTACHMENT_H

#include "guest.h"

struct attachment {
    struct target target;
    struct memory memory;
    int userfault_fd;
    bool fresh; /* nothing is stored yet */
};

/* Find them, or have the process make them. On failure guest->problem is set, and what is open is still to be closed. */
int attachment_open(struct attachment *attachment, struct guest *guest);

/* Close what is open here: not when a pager has taken it. */
void attachment_close(struct attachment *attachment);

#endif
