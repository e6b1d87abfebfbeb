/* Why something was not done: what, where, and what to do about it, in one line for a person. */
#ifndef PONDSTACK_STORE_PROBLEM_H
#define PONDSTACK_STORE_PROBLEM_H

struct problem {
    char text[512];
};

/* Write the text down; returns -1, so that a function can end with it. */
int problem_set(struct problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
