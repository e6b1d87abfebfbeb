/* What is left of a guest at its source after the switch of a hand-over: pages that the destination still fetches.
 *
 * A keeper holds the shared state and the guest's file, so that both outlive the guest's process and this one. For the
 * control thread only. */
#ifndef PONDSTACK_CONTROL_REMAINS_H
#define PONDSTACK_CONTROL_REMAINS_H

#include "guest.h"

/* Have a keeper hold them, and the record say so. On failure nothing has changed. */
int remains_keep(struct guest *guest, const char *folder, struct problem *problem);

/* Go on where a former process was killed: serve the destination, and nobody here. */
int remains_resume(struct guest *guest);

#endif
