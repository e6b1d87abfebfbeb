/* What can be asked of this process: one JSON object in, one out. */
#ifndef PONDSTACK_CONTROL_VERBS_H
#define PONDSTACK_CONTROL_VERBS_H

#include "guests.h"

/* Carry out one request, a line of text. Returns the answer, without an end of line, for the caller to free; NULL when
 * there is no memory. */
char *verbs_answer(struct guests *guests, const char *line, size_t size);

#endif
