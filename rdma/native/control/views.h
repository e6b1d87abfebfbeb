/* What is told of a guest, or of a block device: settings, state, counters, leases, latencies. */
#ifndef PONDSTACK_CONTROL_VIEWS_H
#define PONDSTACK_CONTROL_VIEWS_H

#include "block.h"
#include "guest.h"

json_t *guest_to_json(const struct guest *guest);
json_t *block_to_json(const struct block *block);

#endif
