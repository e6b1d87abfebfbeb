/* What the programs of checks share: a check that fails says where, and ends the process. */
#ifndef PONDSTACK_TESTS_CHECKS_H
#define PONDSTACK_TESTS_CHECKS_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
