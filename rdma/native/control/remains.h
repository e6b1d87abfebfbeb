/* What a guest that is handed over leaves at its source: pages that the destination still fetches.
 *
 * From the offer on a keeper holds the shared state and the guest's file, so that both outlive the guest's process,
 * which may end before anybody could order a keeper, and this one. For the control thread only. */
#ifndef PONDSTACK_CONTROL_REMAINS_H
#define PONDSTACK_CONTROL_REMAINS_H

#include "guest.h"

/* Have a keeper hold them, and the record say so, of a guest that is about to be offered. On failure nothing has
 * changed. */
int remains_keep(struct guest *guest, const char *folder, struct problem *problem);

/* Have the record say that they are the destination's. On failure nothing has changed. */
int remains_switch(struct guest *guest, const char *folder, struct problem *problem);

/* The guest is offered no more: have no keeper hold them, and the record say so. */
void remains_let_go(struct guest *guest, const char *folder);

/* Before its pager runs: go on with an offer of a former process, also where the guest is frozen. */
int remains_offer(struct guest *guest);

/* Go on where a former process was killed: serve the destination, and nobody here. */
int remains_resume(struct guest *guest);

#endif
