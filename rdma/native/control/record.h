/* Which guests are attached, on disk: what a process that is started after a death goes on with. */
#ifndef PONDSTACK_CONTROL_RECORD_H
#define PONDSTACK_CONTROL_RECORD_H

#include "guest.h"

#include <jansson.h>

/* Return the settings as an object, and the reverse. Unknown members, wrong types, values out of bounds are refused. */
json_t *settings_to_json(const struct guest_settings *settings);
int settings_from_json(struct guest_settings *settings, json_t *object, struct problem *problem);

/* Write a guest's record, as a whole or not at all. */
int record_write(const char *folder, const struct guest_settings *settings, struct problem *problem);

/* Read one file of the folder of records. */
int record_read(const char *path, struct guest_settings *settings, struct problem *problem);

/* Remove a guest's record; idempotent. */
void record_remove(const char *folder, const char *guest);

#endif
