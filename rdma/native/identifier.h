/* One connection of librdmacm for Python, or what listens for them.
 *
 * Nothing that takes time is done under the interpreter's lock: the calls only hand the kernel a message, and `close`,
 * which may wait for the kernel, gives the lock up.
 */
#ifndef PONDSTACK_IDENTIFIER_H
#define PONDSTACK_IDENTIFIER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <rdma/rdma_cma.h>

typedef struct {
    PyObject_HEAD
    PyObject *channel; /* kept while there is an identifier of it */
    unsigned *open; /* how many of that channel are not closed */
    struct rdma_cm_id *id; /* NULL: closed */
} Identifier;

extern PyType_Spec identifier_spec;

/* One of a channel: the id's events are its own from now on. NULL with an error set: the id is the caller's still. */
Identifier *identifier_new(PyTypeObject *type, PyObject *channel, unsigned *open, struct rdma_cm_id *id);

#endif
