#include "cm_id.h"

#include "links/cm_attrs.h"
#include "pyobject.h"

/* The sizes of private data in the messages of RDMA_PS_TCP, for reliable connections. */
enum { REQUEST_BYTES = 56, REPLY_BYTES = 196, REFUSAL_BYTES = 148 };

CmId *cm_id_new(PyTypeObject *type, PyObject *channel, unsigned *open_cm_ids, struct rdma_cm_id *id)
{
    CmId *made = allocate(type);
    if (made != NULL) {
        made->channel = Py_NewRef(channel);
        made->open_cm_ids = open_cm_ids;
        ++*open_cm_ids;
        made->id = id;
        id->context = made;
    }
    return made;
}

static PyObject *cm_id_resolve_route(PyObject *self, PyObject *milliseconds)
{
    CmId *cm_id = (CmId *)self;
    long timeout_ms = PyLong_AsLong(milliseconds);
    if ((timeout_ms == -1 && PyErr_Occurred()) || !is_open(cm_id->id)) {
        return NULL;
    }
    return finished(rdma_resolve_route(cm_id->id, (int)timeout_ms));
}

/* Check that private data fits into a message. False, with an error set, if it does not or the CmId is closed. */
static bool fits(const CmId *cm_id, Py_ssize_t size, Py_ssize_t most)
{
    if (size > most) {
        PyErr_Format(PyExc_ValueError, "%zd bytes of private data, not %zd, fit", most, size);
        return false;
    }
    return is_open(cm_id->id);
}

/* connect(qpn, data) */
static PyObject *cm_id_connect(PyObject *self, PyObject *arguments)
{
    CmId *cm_id = (CmId *)self;
    unsigned qpn;
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "Iy#", &qpn, &data, &size) || !fits(cm_id, size, REQUEST_BYTES)) {
        return NULL;
    }
    return finished(send_request(cm_id->id, qpn, data, (size_t)size));
}

/* accept(qpn, max_rd_atomic, data) */
static PyObject *cm_id_accept(PyObject *self, PyObject *arguments)
{
    CmId *cm_id = (CmId *)self;
    unsigned qpn, max_rd_atomic;
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "IIy#", &qpn, &max_rd_atomic, &data, &size) || !fits(cm_id, size, REPLY_BYTES)) {
        return NULL;
    }
    return finished(send_reply(cm_id->id, qpn, max_rd_atomic, data, (size_t)size));
}

/* reject(data) */
static PyObject *cm_id_reject(PyObject *self, PyObject *arguments)
{
    CmId *cm_id = (CmId *)self;
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "y#", &data, &size) || !fits(cm_id, size, REFUSAL_BYTES)) {
        return NULL;
    }
    return finished(rdma_reject(cm_id->id, data, (uint8_t)size));
}

static PyObject *cm_id_establish(PyObject *self, PyObject *unused)
{
    (void)unused;
    CmId *cm_id = (CmId *)self;
    return is_open(cm_id->id) ? finished(rdma_establish(cm_id->id)) : NULL;
}

/* attrs(): (dgid, dest_qpn, rq_psn, sq_psn, port_num, sgid_index, path_mtu, max_rd_atomic, traffic_class) */
static PyObject *cm_id_attrs(PyObject *self, PyObject *unused)
{
    (void)unused;
    CmId *cm_id = (CmId *)self;
    CmAttrs attrs;
    if (!is_open(cm_id->id)) {
        return NULL;
    }
    int error = cm_attrs_of(cm_id->id, &attrs);
    if (error != 0) {
        return failed(error);
    }
    return Py_BuildValue("y#IIIIIIII", attrs.dgid.raw, (Py_ssize_t)sizeof attrs.dgid.raw, attrs.dest_qpn, attrs.rq_psn,
                         attrs.sq_psn, attrs.port_num, attrs.sgid_index, attrs.path_mtu, attrs.max_rd_atomic,
                         attrs.traffic_class);
}

static PyObject *cm_id_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    CmId *cm_id = (CmId *)self;
    struct rdma_cm_id *id = cm_id->id;
    if (id != NULL) {
        cm_id->id = NULL;
        Py_BEGIN_ALLOW_THREADS
        rdma_destroy_id(id);
        Py_END_ALLOW_THREADS
        --*cm_id->open_cm_ids;
    }
    Py_RETURN_NONE;
}

static PyObject *cm_id_port(PyObject *self, void *unused)
{
    (void)unused;
    CmId *cm_id = (CmId *)self;
    return is_open(cm_id->id) ? PyLong_FromLong(ntohs(rdma_get_src_port(cm_id->id))) : NULL;
}

static PyObject *cm_id_device(PyObject *self, void *unused)
{
    (void)unused;
    CmId *cm_id = (CmId *)self;
    if (!is_open(cm_id->id)) {
        return NULL;
    }
    struct ibv_context *context = cm_id->id->verbs;
    return PyUnicode_FromString(context == NULL ? "" : ibv_get_device_name(context->device));
}

static void cm_id_dealloc(PyObject *self)
{
    CmId *cm_id = (CmId *)self;
    if (cm_id->channel != NULL) {
        if (cm_id->id != NULL) {
            rdma_destroy_id(cm_id->id);
            --*cm_id->open_cm_ids;
        }
        Py_DECREF(cm_id->channel);
    }
    give_back(self);
}

static PyMethodDef cm_id_methods[] = {
    {"resolve_route", cm_id_resolve_route, METH_O, "resolve_route(milliseconds)"},
    {"connect", cm_id_connect, METH_VARARGS, "connect(qpn, data): send a connection request."},
    {"accept", cm_id_accept, METH_VARARGS, "accept(qpn, max_rd_atomic, data): accept a connection request."},
    {"reject", cm_id_reject, METH_VARARGS, "reject(data): reject a connection request."},
    {"establish", cm_id_establish, METH_NOARGS, "establish(): acknowledge the response."},
    {"attrs", cm_id_attrs, METH_NOARGS, "attrs(): the attributes that librdmacm chose for the queue pair."},
    {"close", cm_id_close, METH_NOARGS, "close(): disconnect; idempotent."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cm_id_properties[] = {
    {"port", cm_id_port, NULL, "The port of the local address.", NULL},
    {"device", cm_id_device, NULL, "The name of the device.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot cm_id_slots[] = {
    {Py_tp_dealloc, cm_id_dealloc},
    {Py_tp_methods, cm_id_methods},
    {Py_tp_getset, cm_id_properties},
    {Py_tp_doc, "An rdma_cm_id: a connection, or a listener."},
    {0, NULL},
};

PyType_Spec cm_id_spec = {
    .name = "pondstack_rdma._cm.CmId",
    .basicsize = sizeof(CmId),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = cm_id_slots,
};
