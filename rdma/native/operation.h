/* What Python code wants done: its operations, offsets and buffers. */
#ifndef PONDSTACK_OPERATION_H
#define PONDSTACK_OPERATION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/* The classes of operations, and the names of their attributes. */
typedef struct {
    PyObject *read_type, *write_type;
    PyObject *key, *offset, *into, *data;
} Names;

/* Of one operation; held until parts_release. */
typedef struct {
    PyObject *key, *offset, *buffer;
    bool is_read;
} Parts;

/* Whether it worked; else an error is set. names_release in either case. */
bool names_hold(Names *names, PyObject *read_type, PyObject *write_type);

void names_release(Names *names);

/* Take an operation apart. False, with nothing held and no error set, when Python has to look at it. */
bool parts_hold(Parts *parts, const Names *names, PyObject *operation);

void parts_release(Parts *parts);

/* Hold the buffer of an access at an offset, which is `at`. False, with nothing held and no error set, when Python has
 * to look at it. A buffer of Python code may do anything while it is asked: no pointer into a table is good after it. */
bool access_hold(Py_buffer *local, long long *at, PyObject *offset, PyObject *buffer, bool is_read);

#endif
