/* The destination's mirror of what stays with lenders, where hosts share the file system of their mirrors: the file
 * system copies it out of the source's one, so that nothing of it goes from lenders to the destination.
 *
 * The source has other hosts see its pages there first. They are sealed, under a key that the destination has: of each
 * run the first page is opened. Whatever fails, lenders are read from then on, and the source has its mirror until the
 * end. Pages that are not sealed are not copied so: nobody could tell another file.
 */
#ifndef PONDSTACK_HANDOVER_FORMER_MIRROR_H
#define PONDSTACK_HANDOVER_FORMER_MIRROR_H

#include "incoming.h"

/* Of the pager's thread: have the mirror have a run of pages that lenders have for the source. 0, or an errno. */
int former_mirror_take(struct incoming *incoming, uint32_t first, uint32_t count);

/* Close the source's mirror; idempotent. */
void former_mirror_end(struct incoming *incoming);

#endif
