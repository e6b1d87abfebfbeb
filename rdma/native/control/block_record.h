/* Which block devices are exported, on disk, and as requests say it. */
#ifndef PONDSTACK_CONTROL_BLOCK_RECORD_H
#define PONDSTACK_CONTROL_BLOCK_RECORD_H

#include "block.h"

#include <jansson.h>

enum { RECORD_PATH_BYTES = 1024 };

/* Return the settings as an object, and the reverse. Unknown members, wrong types, values out of bounds are refused. */
json_t *block_settings_to_json(const struct block_settings *settings);
int block_settings_from_json(struct block_settings *settings, json_t *object, struct problem *problem);

/* Where it is. */
void block_record_path(char path[RECORD_PATH_BYTES], const char *folder, const char *block);

/* Write a device's record, as a whole or not at all. */
int block_record_write(const char *folder, const struct block_settings *settings, struct problem *problem);

/* Read one file of the folder of records. */
int block_record_read(const char *path, struct block_settings *settings, struct problem *problem);

/* Remove a device's record; idempotent. */
void block_record_remove(const char *folder, const char *block);

#endif
