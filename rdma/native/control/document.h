/* A small JSON file that is there as a whole or not at all. */
#ifndef PONDSTACK_CONTROL_DOCUMENT_H
#define PONDSTACK_CONTROL_DOCUMENT_H

#include "../store/problem.h"

#include <jansson.h>

/* Write an object, which is given up (NULL: there was no memory for it). */
int document_write(const char *path, json_t *object, struct problem *problem);

#endif
