/* librdmacm for Python, as far as it is used: connections of queue pairs that others have made (path.h).
 *
 * pyverbs waits for the manager's events with the interpreter's lock held, without a time-out, and shows no descriptor.
 * Here a Channel shows its descriptor, for select and poll, and `event` never waits. Nothing that takes time is done under
 * the lock (identifier.h).
 *
 * An Identifier keeps its Channel. Events are acknowledged before anybody sees them: so an identifier can be closed at
 * any time. The kernel drops the events of one that is closed.
 *
 * Limited API of Python 3.11: one build serves all later versions.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>

#include "identifier.h"
#include "object.h"
#include "path.h"

typedef struct {
    PyObject_HEAD
    struct rdma_event_channel *channel;
    PyTypeObject *identifier;
    unsigned identifiers;
} Channel;

typedef struct {
    PyTypeObject *identifier;
} State;

static Identifier *identifier_of(Channel *channel, struct rdma_cm_id *id)
{
    return identifier_new(channel->identifier, (PyObject *)channel, &channel->identifiers, id);
}

/* One of a new id, and the address that it is about. */
static Identifier *identifier_for(Channel *channel, const char *text, int port, struct sockaddr_storage *address)
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
    Identifier *made = identifier_of(channel, id);
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
    Identifier *made = identifier_for((Channel *)self, text, 0, &address);
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
    Identifier *made = identifier_for((Channel *)self, text, port, &address);
    if (made != NULL && rdma_resolve_addr(made->id, NULL, (struct sockaddr *)&address, milliseconds)) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(made);
    }
    return (PyObject *)made;
}

/* Whose event it is: of a request, a new one. */
static Identifier *owner_of(Channel *channel, const struct rdma_cm_event *event)
{
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
        return (Identifier *)Py_NewRef(event->id->context);
    }
    return identifier_of(channel, event->id);
}

/* event(): (kind, identifier, status, private data), or None. The interpreter's lock is held from here to the
 * acknowledgement: nobody can close an identifier in between. */
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
    const struct rdma_conn_param *told = &event->param.conn;
    Identifier *owner = owner_of(channel, event);
    PyObject *found = NULL;
    if (owner != NULL) {
        found = Py_BuildValue("iOiy#", (int)event->event, owner, event->status, told->private_data ? told->private_data : "",
                              told->private_data ? (Py_ssize_t)told->private_data_len : 0);
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
        if (channel->identifiers != 0) {
            PyErr_SetString(PyExc_RuntimeError, "its identifiers have to be closed first");
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
    made->identifier = (PyTypeObject *)Py_NewRef((PyObject *)state->identifier);
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
    Py_XDECREF((PyObject *)channel->identifier);
    give_back(self);
}

static PyMethodDef channel_methods[] = {
    {"listen", channel_listen, METH_VARARGS, "listen(address, backlog): an identifier that listens on a free port."},
    {"resolve", channel_resolve, METH_VARARGS, "resolve(address, port, milliseconds): an identifier that will connect."},
    {"event", channel_event, METH_NOARGS, "event(): (kind, identifier, status, private data), or None."},
    {"fileno", channel_fileno, METH_NOARGS, "fileno(): readable when there is an event."},
    {"close", channel_close, METH_NOARGS, "close(): after its identifiers; idempotent."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot channel_slots[] = {
    {Py_tp_new, channel_new},
    {Py_tp_dealloc, channel_dealloc},
    {Py_tp_methods, channel_methods},
    {Py_tp_doc, "Channel(): events of connections."},
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
    state->identifier = (PyTypeObject *)PyType_FromModuleAndSpec(module, &identifier_spec, NULL);
    int result = channel == NULL || state->identifier == NULL || PyModule_AddObjectRef(module, "Channel", channel);
    Py_XDECREF(channel);
    return result ? -1 : 0;
}

static void empty(void *module)
{
    State *state = PyModule_GetState(module);
    if (state != NULL) {
        Py_CLEAR(state->identifier);
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
