/* An rdma_cm_id for Python: a connection, or a listener.
 *
 * No slow call is made under the interpreter's lock: the calls only hand a message to the kernel, and `close`, which may
 * wait for the kernel, releases the lock.
 */
#ifndef PONDSTACK_CM_ID_H
#define PONDSTACK_CM_ID_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <rdma/rdma_cma.h>

typedef struct {
    PyObject_HEAD
    PyObject *channel; /* the CmId holds a reference */
    unsigned *open_cm_ids; /* the number of CmIds of that channel that are not closed */
    struct rdma_cm_id *id; /* NULL after `close` */
} CmId;

extern PyType_Spec cm_id_spec;

/* Wrap an id of a channel. The CmId owns the id, and gets its events. NULL, with an error set: the caller still owns
 * the id. */
CmId *cm_id_new(PyTypeObject *type, PyObject *channel, unsigned *open_cm_ids, struct rdma_cm_id *id);

#endif
