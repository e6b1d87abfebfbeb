#include "identifier.h"

#include "object.h"
#include "path.h"

/* Of RDMA_PS_TCP, in messages of reliable connections. */
enum { REQUEST_BYTES = 56, REPLY_BYTES = 196, REFUSAL_BYTES = 148 };

Identifier *identifier_new(PyTypeObject *type, PyObject *channel, unsigned *open, struct rdma_cm_id *id)
{
    Identifier *made = allocate(type);
    if (made != NULL) {
        made->channel = Py_NewRef(channel);
        made->open = open;
        ++*open;
        made->id = id;
        id->context = made;
    }
    return made;
}

static PyObject *identifier_resolve_route(PyObject *self, PyObject *milliseconds)
{
    Identifier *identifier = (Identifier *)self;
    long number = PyLong_AsLong(milliseconds);
    if ((number == -1 && PyErr_Occurred()) || !is_open(identifier->id)) {
        return NULL;
    }
    return finished(rdma_resolve_route(identifier->id, (int)number));
}

/* What a message may carry; false with an error set. */
static bool fits(const Identifier *identifier, Py_ssize_t size, Py_ssize_t most)
{
    if (size > most) {
        PyErr_Format(PyExc_ValueError, "%zd bytes of private data, not %zd, fit", most, size);
        return false;
    }
    return is_open(identifier->id);
}

/* connect(number, data) */
static PyObject *identifier_connect(PyObject *self, PyObject *arguments)
{
    Identifier *identifier = (Identifier *)self;
    unsigned number;
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "Iy#", &number, &data, &size) || !fits(identifier, size, REQUEST_BYTES)) {
        return NULL;
    }
    return finished(send_request(identifier->id, number, data, (size_t)size));
}

/* accept(number, reads, data) */
static PyObject *identifier_accept(PyObject *self, PyObject *arguments)
{
    Identifier *identifier = (Identifier *)self;
    unsigned number, reads;
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "IIy#", &number, &reads, &data, &size) || !fits(identifier, size, REPLY_BYTES)) {
        return NULL;
    }
    return finished(send_reply(identifier->id, number, reads, data, (size_t)size));
}

/* reject(data) */
static PyObject *identifier_reject(PyObject *self, PyObject *arguments)
{
    Identifier *identifier = (Identifier *)self;
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "y#", &data, &size) || !fits(identifier, size, REFUSAL_BYTES)) {
        return NULL;
    }
    return finished(rdma_reject(identifier->id, data, (uint8_t)size));
}

static PyObject *identifier_establish(PyObject *self, PyObject *unused)
{
    (void)unused;
    Identifier *identifier = (Identifier *)self;
    return is_open(identifier->id) ? finished(rdma_establish(identifier->id)) : NULL;
}

/* path(): (gid, number, their_packet, our_packet, port, gid_index, mtu, reads, traffic_class) */
static PyObject *identifier_path(PyObject *self, PyObject *unused)
{
    (void)unused;
    Identifier *identifier = (Identifier *)self;
    Path path;
    if (!is_open(identifier->id)) {
        return NULL;
    }
    int error = path_of(identifier->id, &path);
    if (error != 0) {
        return failed(error);
    }
    return Py_BuildValue("y#IIIIIIII", path.gid.raw, (Py_ssize_t)sizeof path.gid.raw, path.number, path.their_packet,
                         path.our_packet, path.port, path.gid_index, path.mtu, path.reads, path.traffic_class);
}

static PyObject *identifier_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    Identifier *identifier = (Identifier *)self;
    struct rdma_cm_id *id = identifier->id;
    if (id != NULL) {
        identifier->id = NULL;
        Py_BEGIN_ALLOW_THREADS
        rdma_destroy_id(id);
        Py_END_ALLOW_THREADS
        --*identifier->open;
    }
    Py_RETURN_NONE;
}

static PyObject *identifier_port(PyObject *self, void *unused)
{
    (void)unused;
    Identifier *identifier = (Identifier *)self;
    return is_open(identifier->id) ? PyLong_FromLong(ntohs(rdma_get_src_port(identifier->id))) : NULL;
}

static PyObject *identifier_device(PyObject *self, void *unused)
{
    (void)unused;
    Identifier *identifier = (Identifier *)self;
    if (!is_open(identifier->id)) {
        return NULL;
    }
    struct ibv_context *context = identifier->id->verbs;
    return PyUnicode_FromString(context == NULL ? "" : ibv_get_device_name(context->device));
}

static void identifier_dealloc(PyObject *self)
{
    Identifier *identifier = (Identifier *)self;
    if (identifier->channel != NULL) {
        if (identifier->id != NULL) {
            rdma_destroy_id(identifier->id);
            --*identifier->open;
        }
        Py_DECREF(identifier->channel);
    }
    give_back(self);
}

static PyMethodDef identifier_methods[] = {
    {"resolve_route", identifier_resolve_route, METH_O, "resolve_route(milliseconds)"},
    {"connect", identifier_connect, METH_VARARGS, "connect(number, data): ask the other side."},
    {"accept", identifier_accept, METH_VARARGS, "accept(number, reads, data): answer a request."},
    {"reject", identifier_reject, METH_VARARGS, "reject(data): refuse a request."},
    {"establish", identifier_establish, METH_NOARGS, "establish(): confirm the answer."},
    {"path", identifier_path, METH_NOARGS, "path(): what the manager chose."},
    {"close", identifier_close, METH_NOARGS, "close(): tells the other side; idempotent."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef identifier_properties[] = {
    {"port", identifier_port, NULL, "Of this side's address.", NULL},
    {"device", identifier_device, NULL, "Its name.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot identifier_slots[] = {
    {Py_tp_dealloc, identifier_dealloc},
    {Py_tp_methods, identifier_methods},
    {Py_tp_getset, identifier_properties},
    {Py_tp_doc, "One connection, or what listens for them."},
    {0, NULL},
};

PyType_Spec identifier_spec = {
    .name = "pondstack_rdma._cm.Identifier",
    .basicsize = sizeof(Identifier),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = identifier_slots,
};
