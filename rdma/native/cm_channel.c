/* The part of librdmacm that the verbs transport uses, for Python: it connects queue pairs that its callers have created
 * (links/cm_attrs.h).
 *
 * pyverbs waits for CM events with the interpreter's lock held, without a time-out, and does not expose the descriptor.
 * A Channel exposes its descriptor, for select and poll, and `event` never waits. No slow call is made under the lock
 * (cm_id.h).
 *
 * A CmId keeps a reference to its Channel. `event` acknowledges an event before it returns it, so a CmId can be closed at
 * any time. The kernel drops the events of a CmId that is closed.
 *
 * Limited API of Python 3.11: one build serves all later versions.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>

#include "cm_id.h"
#include "links/address.h"
#include "links/cm_attrs.h"
#include "pyobject.h"

typedef struct {
    PyObject_HEAD
    struct rdma_event_channel *channel;
    PyTypeObject *cm_id_type;
    unsigned open_cm_ids;
} Channel;

typedef struct {
    PyTypeObject *cm_id_type;
} State;

static CmId *cm_id_of(Channel *channel, struct rdma_cm_id *id)
{
    return cm_id_new(channel->cm_id_type, (PyObject *)channel, &channel->open_cm_ids, id);
}

/* Create a CmId, and parse the address that it will listen on or connect to. */
static CmId *cm_id_for(Channel *channel, const char *text, int port, struct sockaddr_storage *address)
{
    if (!is_open(channel->channel)) {
        return NULL;
    }
    int error = address_of(text, port, address);
    if (error != 0) {
        failed(error);
        return NULL;
    }
    struct rdma_cm_id *id;
    if (rdma_create_id(channel->channel, &id, NULL, RDMA_PS_TCP) != 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        return NULL;
    }
    CmId *made = cm_id_of(channel, id);
    if (made == NULL) {
        rdma_destroy_id(id);
    }
    return made;
}

/* listen(address, backlog): on a free port. */
static PyObject *channel_listen(PyObject *self, PyObject *arguments)
{
    const char *text;
    int backlog;
    struct sockaddr_storage address;
    if (!PyArg_ParseTuple(arguments, "si", &text, &backlog)) {
        return NULL;
    }
    CmId *made = cm_id_for((Channel *)self, text, 0, &address);
    if (made != NULL && (rdma_bind_addr(made->id, (struct sockaddr *)&address) || rdma_listen(made->id, backlog))) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(made);
    }
    return (PyObject *)made;
}

/* resolve(address, port, milliseconds): an event tells the outcome. */
static PyObject *channel_resolve(PyObject *self, PyObject *arguments)
{
    const char *text;
    int port, milliseconds;
    struct sockaddr_storage address;
    if (!PyArg_ParseTuple(arguments, "sii", &text, &port, &milliseconds)) {
        return NULL;
    }
    CmId *made = cm_id_for((Channel *)self, text, port, &address);
    if (made != NULL && rdma_resolve_addr(made->id, NULL, (struct sockaddr *)&address, milliseconds)) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(made);
    }
    return (PyObject *)made;
}

/* Return the CmId of an event. A connection request gets a new one. */
static CmId *owner_of(Channel *channel, const struct rdma_cm_event *event)
{
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
        return (CmId *)Py_NewRef(event->id->context);
    }
    return cm_id_of(channel, event->id);
}

/* event(): (kind, cm_id, status, private data), or None. The interpreter's lock is held until the acknowledgement, so
 * nobody can close a CmId in between. */
static PyObject *channel_event(PyObject *self, PyObject *unused)
{
    (void)unused;
    Channel *channel = (Channel *)self;
    struct rdma_cm_event *event;
    if (!is_open(channel->channel)) {
        return NULL;
    }
    if (rdma_get_cm_event(channel->channel, &event) != 0) {
        if (errno == EAGAIN || errno == EINTR) {
            Py_RETURN_NONE;
        }
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    const struct rdma_conn_param *param = &event->param.conn;
    CmId *owner = owner_of(channel, event);
    PyObject *found = NULL;
    if (owner != NULL) {
        found = Py_BuildValue("iOiy#", (int)event->event, owner, event->status, param->private_data ? param->private_data : "",
                              param->private_data ? (Py_ssize_t)param->private_data_len : 0);
    }
    struct rdma_cm_id *lost = owner == NULL ? event->id : NULL;
    rdma_ack_cm_event(event);
    if (lost != NULL) {
        rdma_destroy_id(lost);
    }
    Py_XDECREF((PyObject *)owner);
    return found;
}

static PyObject *channel_fileno(PyObject *self, PyObject *unused)
{
    (void)unused;
    const Channel *channel = (Channel *)self;
    return is_open(channel->channel) ? PyLong_FromLong(channel->channel->fd) : NULL;
}

static PyObject *channel_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    Channel *channel = (Channel *)self;
    if (channel->channel != NULL) {
        if (channel->open_cm_ids != 0) {
            PyErr_SetString(PyExc_RuntimeError, "close its CmIds first");
            return NULL;
        }
        rdma_destroy_event_channel(channel->channel);
        channel->channel = NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *channel_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    if (PyTuple_Size(arguments) || (names != NULL && PyDict_Size(names))) {
        PyErr_SetString(PyExc_TypeError, "Channel takes no arguments");
        return NULL;
    }
    State *state = PyType_GetModuleState(type);
    Channel *made = state == NULL ? NULL : allocate(type);
    if (made == NULL) {
        return NULL;
    }
    made->cm_id_type = (PyTypeObject *)Py_NewRef((PyObject *)state->cm_id_type);
    made->channel = rdma_create_event_channel();
    if (made->channel == NULL || fcntl(made->channel->fd, F_SETFL, O_NONBLOCK) != 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(made);
    }
    return (PyObject *)made;
}

static void channel_dealloc(PyObject *self)
{
    Channel *channel = (Channel *)self;
    if (channel->channel != NULL) {
        rdma_destroy_event_channel(channel->channel);
    }
    Py_XDECREF((PyObject *)channel->cm_id_type);
    give_back(self);
}

static PyMethodDef channel_methods[] = {
    {"listen", channel_listen, METH_VARARGS, "listen(address, backlog): return a CmId that listens on a free port."},
    {"resolve", channel_resolve, METH_VARARGS, "resolve(address, port, milliseconds): return a CmId that will connect."},
    {"event", channel_event, METH_NOARGS, "event(): (kind, cm_id, status, private data), or None."},
    {"fileno", channel_fileno, METH_NOARGS, "fileno(): readable when there is an event."},
    {"close", channel_close, METH_NOARGS, "close(): call it after its CmIds are closed; idempotent."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot channel_slots[] = {
    {Py_tp_new, channel_new},
    {Py_tp_dealloc, channel_dealloc},
    {Py_tp_methods, channel_methods},
    {Py_tp_doc, "Channel(): an rdma_event_channel."},
    {0, NULL},
};

static PyType_Spec channel_spec = {
    .name = "pondstack_rdma._cm.Channel",
    .basicsize = sizeof(Channel),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = channel_slots,
};

static int fill(PyObject *module)
{
    State *state = PyModule_GetState(module);
    PyObject *channel = PyType_FromModuleAndSpec(module, &channel_spec, NULL);
    state->cm_id_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &cm_id_spec, NULL);
    int result = channel == NULL || state->cm_id_type == NULL || PyModule_AddObjectRef(module, "Channel", channel);
    Py_XDECREF(channel);
    return result ? -1 : 0;
}

static void empty(void *module)
{
    State *state = PyModule_GetState(module);
    if (state != NULL) {
        Py_CLEAR(state->cm_id_type);
    }
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill},
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pondstack_rdma._cm",
    .m_doc = "Connections by librdmacm.",
    .m_size = sizeof(State),
    .m_slots = module_slots,
    .m_free = empty,
};

PyMODINIT_FUNC PyInit__cm(void)
{
    return PyModuleDef_Init(&module);
}
