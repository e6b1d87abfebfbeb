/* Requests that hand a guest with remote memory over to another data plane, and take one over. For the control thread
 * only. */
#ifndef PONDSTACK_CONTROL_HANDOVER_H
#define PONDSTACK_CONTROL_HANDOVER_H

#include "guests.h"

#include <jansson.h>

/* Unpack where the source of a hand-over is, and the session key, if one is there. Refuses what else there is. */
int origin_from_json(struct origin_address *from, struct session_key *key, json_t *object, struct problem *problem);

/* The same of a record: without the key, which is on no disk. */
json_t *origin_to_json(const struct origin_address *from);

/* How far a hand-over is; NULL: there is none. */
json_t *handover_to_json(const struct guest *guest);

/* Whether a guest is on its way from or to another data plane, and cannot be detached. */
bool handover_runs(const struct guest *guest);

/* Now and then: note what has come to its end. */
void handover_look(struct guests *guests, struct guest *guest);

/* Each verb: 0, or -1 and a problem. Idempotent. */
int handover_offer(struct guests *guests, struct guest *guest, json_t *request, struct problem *problem);
int handover_take(struct guest *guest, struct problem *problem);
int handover_switch(struct guests *guests, struct guest *guest, struct problem *problem);
int handover_withdraw(struct guest *guest, struct problem *problem);
int handover_forget(struct guest *guest, struct problem *problem);

#endif
