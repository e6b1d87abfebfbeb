/* The hot path of verbs: from a key, an offset and a buffer to a completed transfer, without Python in between.
 *
 * A Requester has a connection (rc_conn.h) and the remote regions of one link, which it finds by the identity of their keys.
 * `read`, `write` and `batch` carry out the access, or do nothing and return LEFT_TO_PYTHON. Unusual accesses (an unknown
 * key, bounds, odd buffers, a connection that has ended) are left to the Python code, which raises the right error and calls
 * `carry_out`, the general method.
 *
 * Threads: one call at a time; the link holds a lock around each. The interpreter's lock is released while the device works.
 * The regions may change then, so a transfer has a copy of what it needs of them.
 *
 * Limited API of Python 3.11: one build serves all later versions.
 */
#include <errno.h>
#include <string.h>

#include "transfers.h"

enum { LEFT_TO_PYTHON = -4, GID_BYTES = 16 };

/* Begin a call. False, with an error set, if another one is running. */
static bool begin(Requester *requester)
{
    if (requester->busy) {
        PyErr_SetString(PyExc_RuntimeError, "a requester serves one call at a time");
        return false;
    }
    requester->busy = true;
    return true;
}

/* Carry out the transfers that were prepared. */
static int carry_out(Requester *requester, unsigned count, double seconds, unsigned *done)
{
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = rc_conn_carry_out(&requester->conn, requester->transfers, count, seconds, done);
    Py_END_ALLOW_THREADS
    return status;
}

static PyObject *one(Requester *requester, PyObject *const *arguments, Py_ssize_t count, bool is_read)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "key, offset and buffer are needed");
        return NULL;
    }
    if (!begin(requester)) {
        return NULL;
    }
    int status = LEFT_TO_PYTHON;
    unsigned done;
    if (!requester->conn.ended && prepare(requester, 0, arguments[0], arguments[1], arguments[2], is_read)) {
        status = carry_out(requester, 1, requester->seconds, &done);
        release(requester, 1);
    }
    requester->busy = false;
    return PyLong_FromLong(status);
}

static PyObject *requester_read(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return one((Requester *)self, arguments, count, true);
}

static PyObject *requester_write(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return one((Requester *)self, arguments, count, false);
}

/* time_reads(key, offset, into, count): the nanoseconds of each, as bytes of int64; fewer when one failed. */
static PyObject *requester_time_reads(PyObject *self, PyObject *arguments)
{
    Requester *requester = (Requester *)self;
    PyObject *key, *offset, *into;
    unsigned count, made = 0;
    if (!PyArg_ParseTuple(arguments, "OOOI", &key, &offset, &into, &count)) {
        return NULL;
    }
    int64_t *ns = PyMem_Calloc(count, sizeof *ns);
    if (ns == NULL) {
        return PyErr_NoMemory();
    }
    if (!begin(requester)) {
        PyMem_Free(ns);
        return NULL;
    }
    if (!requester->conn.ended && prepare(requester, 0, key, offset, into, true)) {
        Py_BEGIN_ALLOW_THREADS
        made = rc_conn_time(&requester->conn, requester->transfers, count, requester->seconds, ns);
        Py_END_ALLOW_THREADS
        release(requester, 1);
    }
    requester->busy = false;
    PyObject *times = PyBytes_FromStringAndSize((const char *)ns, (Py_ssize_t)(made * sizeof *ns));
    PyMem_Free(ns);
    return times;
}

/* batch(operations): how many are complete and the status of the next one. */
static PyObject *requester_batch(PyObject *self, PyObject *operations)
{
    Requester *requester = (Requester *)self;
    unsigned done = 0;
    int status = LEFT_TO_PYTHON;
    bool known = PyList_CheckExact(operations) || PyTuple_CheckExact(operations);
    Py_ssize_t count = known ? PySequence_Size(operations) : 0;
    if (count > 0 && count <= (Py_ssize_t)requester->conn.depth && !requester->conn.ended) {
        if (!begin(requester)) {
            return NULL;
        }
        unsigned held = prepare_all(requester, operations, count);
        if (held == (unsigned)count) {
            status = carry_out(requester, held, requester->seconds, &done);
        }
        release(requester, held);
        requester->busy = false;
    }
    return Py_BuildValue("Ii", done, status);
}

/* carry_out(requests, seconds): the same for (is_read, address, rkey, buffer) each, as the caller knows them. */
static PyObject *requester_carry_out(PyObject *self, PyObject *arguments)
{
    Requester *requester = (Requester *)self;
    PyObject *requests;
    double seconds;
    if (!PyArg_ParseTuple(arguments, "O!d", &PyTuple_Type, &requests, &seconds) || !begin(requester)) {
        return NULL;
    }
    unsigned held = 0, done = 0;
    int status = 0;
    Py_ssize_t count = PyTuple_Size(requests);
    if (count <= 0 || count > (Py_ssize_t)requester->conn.depth || requester->conn.ended) {
        PyErr_SetString(PyExc_ValueError, "the connection has ended, or takes no such batch");
    } else {
        held = prepare_requests(requester, requests, count);
        if (held == (unsigned)count) {
            status = carry_out(requester, held, seconds, &done);
        }
    }
    release(requester, held);
    requester->busy = false;
    return PyErr_Occurred() ? NULL : Py_BuildValue("Ii", done, status);
}

/* add(key, address, rkey, size): add a region. False: the table has no room, and its accesses are left to Python. */
static PyObject *requester_add(PyObject *self, PyObject *arguments)
{
    Requester *requester = (Requester *)self;
    PyObject *key;
    RemoteRegion made = {0};
    unsigned long long address, size;
    if (!PyArg_ParseTuple(arguments, "OKIK", &key, &address, &made.rkey, &size)) {
        return NULL;
    }
    RemoteRegion *region = find_region(requester, key, key) == NULL ? find_region(requester, key, NULL) : NULL;
    if (region == NULL) {
        return PyBool_FromLong(0);
    }
    made.address = address;
    made.size = size;
    made.key = Py_NewRef(key);
    *region = made;
    return PyBool_FromLong(1);
}

/* remove(key): remove a region; idempotent. */
static PyObject *requester_remove(PyObject *self, PyObject *key)
{
    RemoteRegion *region = find_region((Requester *)self, key, key);
    if (region != NULL) {
        region->key = NULL;
        Py_DECREF(key);
    }
    Py_RETURN_NONE;
}

/* connect(dgid, dest_qpn, rq_psn, sq_psn, port_num, sgid_index, path_mtu, max_rd_atomic, traffic_class, timeout,
 * retry_cnt) */
static PyObject *requester_connect(PyObject *self, PyObject *arguments)
{
    RcConn *conn = &((Requester *)self)->conn;
    Peer peer;
    const char *gid;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(arguments, "y#IIIIIIIIII", &gid, &length, &peer.dest_qpn, &peer.rq_psn, &peer.sq_psn,
                          &peer.port_num, &peer.sgid_index, &peer.path_mtu, &peer.max_rd_atomic, &peer.traffic_class,
                          &peer.timeout, &peer.retry_cnt)) {
        return NULL;
    }
    if (length != GID_BYTES || conn->ended) {
        PyErr_SetString(PyExc_ValueError, conn->ended ? "the connection has ended" : "a GID has 16 bytes");
        return NULL;
    }
    memcpy(peer.dgid.raw, gid, GID_BYTES);
    errno = rc_conn_connect(conn, &peer);
    if (errno != 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *requester_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    Requester *requester = (Requester *)self;
    if (!begin(requester)) {
        return NULL;
    }
    bool closed = rc_conn_close(&requester->conn);
    if (closed && requester->stage.obj != NULL) {
        PyBuffer_Release(&requester->stage);
    }
    requester->busy = false;
    return PyBool_FromLong(closed);
}

static PyObject *requester_qpn(PyObject *self, void *unused)
{
    (void)unused;
    const RcConn *conn = &((Requester *)self)->conn;
    return PyLong_FromUnsignedLong(conn->qp == NULL ? 0 : conn->qp->qp_num);
}

static bool set_up(Requester *requester, const char *device)
{
    requester->buffers = PyMem_Calloc(requester->conn.depth, sizeof *requester->buffers);
    requester->transfers = PyMem_Calloc(requester->conn.depth, sizeof *requester->transfers);
    if (!requester->buffers || !requester->transfers) {
        PyErr_NoMemory();
        return false;
    }
    requester->conn.stage = requester->stage.buf;
    requester->conn.stage_bytes = (size_t)requester->stage.len;
    RcConnError error = rc_conn_open(&requester->conn, device);
    if (error != RC_CONN_OPENED) {
        PyErr_Format(PyExc_OSError, "no %s: %s", rc_conn_missing(error), strerror(errno));
    }
    return error == RC_CONN_OPENED;
}

static PyObject *requester_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    if (names != NULL && PyDict_Size(names)) {
        PyErr_SetString(PyExc_TypeError, "Requester takes no named arguments");
        return NULL;
    }
    const char *device;
    int cm_fd, control_fd;
    unsigned depth;
    PyObject *stage, *read_type, *write_type;
    double seconds;
    if (!PyArg_ParseTuple(arguments, "siiIOdOO", &device, &cm_fd, &control_fd, &depth, &stage, &seconds, &read_type,
                          &write_type)) {
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Requester *requester = (Requester *)allocate(type, 0); /* zeroed */
    if (requester == NULL) {
        return NULL;
    }
    requester->seconds = seconds;
    requester->conn.cm_fd = cm_fd;
    requester->conn.control_fd = control_fd;
    requester->conn.depth = depth;
    if (!names_hold(&requester->names, read_type, write_type) ||
        PyObject_GetBuffer(stage, &requester->stage, PyBUF_WRITABLE) != 0 || !set_up(requester, device)) {
        Py_DECREF(requester);
        return NULL;
    }
    return (PyObject *)requester;
}

static void requester_dealloc(PyObject *self)
{
    Requester *requester = (Requester *)self;
    PyTypeObject *type = Py_TYPE(self);
    /* Staging memory that the device may still write to is held for good: it must not become somebody else's. */
    if (rc_conn_close(&requester->conn) && requester->stage.obj != NULL) {
        PyBuffer_Release(&requester->stage);
    }
    for (size_t at = 0; at < REGIONS; at++) {
        Py_XDECREF(requester->regions[at].key);
    }
    PyMem_Free(requester->buffers);
    PyMem_Free(requester->transfers);
    names_release(&requester->names);
    freefunc give_back = (freefunc)PyType_GetSlot(type, Py_tp_free);
    give_back(self);
    Py_DECREF(type);
}

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef requester_methods[] = {
    {"add", requester_add, METH_VARARGS, "add(key, address, rkey, size): add a region. False: the table has no room."},
    {"remove", requester_remove, METH_O, "remove(key): remove a region; idempotent."},
    {"connect", requester_connect, METH_VARARGS,
     "connect(dgid, dest_qpn, rq_psn, sq_psn, port_num, sgid_index, path_mtu, max_rd_atomic, traffic_class, timeout, "
     "retry_cnt)"},
    {"read", METHOD(requester_read), METH_FASTCALL, "read(key, offset, into): its status."},
    {"write", METHOD(requester_write), METH_FASTCALL, "write(key, offset, data): its status."},
    {"batch", requester_batch, METH_O, "batch(operations): how many are complete, the status of the next."},
    {"carry_out", requester_carry_out, METH_VARARGS, "carry_out(requests, seconds): the same, unchecked."},
    {"time_reads", requester_time_reads, METH_VARARGS,
     "time_reads(key, offset, into, count): nanoseconds of reads one after the other, as bytes of int64."},
    {"close", requester_close, METH_NOARGS, "close(): release everything; idempotent."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef requester_properties[] = {
    {"qpn", requester_qpn, NULL, "The number of the queue pair.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot requester_slots[] = {
    {Py_tp_new, requester_new},
    {Py_tp_dealloc, requester_dealloc},
    {Py_tp_methods, requester_methods},
    {Py_tp_getset, requester_properties},
    {Py_tp_doc, "Requester(device, cm_fd, control_fd, depth, stage, seconds, read_type, write_type): accesses of one link."},
    {0, NULL},
};

static PyType_Spec requester_spec = {
    .name = "pondstack_rdma._verbs.Requester",
    .basicsize = sizeof(Requester),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = requester_slots,
};

static int fill(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&requester_spec);
    int failed = type == NULL || PyModule_AddObjectRef(module, "Requester", type) ||
                 PyModule_AddIntConstant(module, "LEFT_TO_PYTHON", LEFT_TO_PYTHON);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill},
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pondstack_rdma._verbs",
    .m_doc = "The borrower's side of RDMA.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__verbs(void)
{
    return PyModuleDef_Init(&module);
}
