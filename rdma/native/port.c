/* The hot path of shared memory: an access that needs nothing but a copy and two looks at a word.
 *
 * A Port knows the windows of one link by the identity of their keys. Each method does what it was asked, or does
 * nothing and says so: whatever is unusual (an unknown or revoked key, bounds, a dead lender, odd buffers) is left to
 * the Python code, which raises the right error. So no rule is written twice, and none is decided here.
 *
 * Memory and threads: all is done under the interpreter's lock, the copy included, so that no window can be unmapped
 * during it; hence the bound on the bytes of a call. The words are written by another process: they are read as
 * atomics, acquire before the copy, and after a fence behind it.
 *
 * Limited API of Python 3.11: one build serves all later versions.
 */
#include "operation.h"
#include "watch.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#ifndef POLLRDHUP
#define POLLRDHUP 0x2000 /* Linux's; behind _GNU_SOURCE in the headers */
#endif

enum { ENTRIES = 1024, PROBES = 8, MAX_OPERATIONS = 1024 };
static const int64_t LOOK_NS = 1000000; /* how often the lender's socket is looked at: each millisecond */
static const int64_t MAX_BYTES = 4 << 20; /* of one call, as it holds the interpreter's lock */

/* A window: both buffers are held, so that neither can be unmapped before `remove`. */
typedef struct {
    PyObject *key; /* NULL: free */
    Py_buffer region;
    Py_buffer control;
    const _Atomic uint64_t *word;
    uint64_t number;
} Entry;

typedef struct {
    PyObject_HEAD
    Names names;
    int fd;
    int64_t looked_ns;
    uint64_t changes; /* of entries */
    Entry entries[ENTRIES];
} Port;

/* One copy that was found to be within bounds. */
typedef struct {
    Py_buffer local;
    const Entry *entry;
    char *remote;
    bool is_read;
} Copy;

/* Of the few entries that may be a key's, the one that holds `wanted`: the key, or NULL for a free one. */
static Entry *probe(Port *port, const PyObject *key, const PyObject *wanted)
{
    size_t at = ((uintptr_t)key >> 4) % ENTRIES;
    for (size_t step = 0; step < PROBES; step++) {
        Entry *entry = &port->entries[(at + step) % ENTRIES];
        if (entry->key == wanted) {
            return entry;
        }
    }
    return NULL;
}

static Entry *find(Port *port, const PyObject *key)
{
    return probe(port, key, key);
}

/* Whether the lender's socket was still open, a millisecond ago at most. */
static bool alive(Port *port)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (now_ns - port->looked_ns < LOOK_NS) {
        return true;
    }
    struct pollfd look = {.fd = port->fd, .events = POLLRDHUP};
    if (poll(&look, 1, 0) != 0) {
        return false;
    }
    port->looked_ns = now_ns;
    return true;
}

/* Prepare a copy. False, with nothing held and no error set, when Python has to look at it. */
static bool prepare(Port *port, PyObject *key, PyObject *offset, PyObject *buffer, bool is_read, Copy *copy)
{
    long long at;
    if (!access_hold(&copy->local, &at, offset, buffer, is_read)) {
        return false;
    }
    /* Only now: a buffer of Python code may have removed windows while it was asked. */
    const Entry *entry = find(port, key);
    if (entry == NULL || at < 0 || at > entry->region.len || copy->local.len > entry->region.len - at) {
        PyBuffer_Release(&copy->local);
        return false;
    }
    copy->entry = entry;
    copy->remote = (char *)entry->region.buf + at;
    copy->is_read = is_read;
    return true;
}

/* Carry it out. False when the key was revoked, before it or meanwhile. */
static bool carry_out(const Copy *copy)
{
    const Entry *entry = copy->entry;
    if (atomic_load_explicit(entry->word, memory_order_acquire) != entry->number) {
        return false;
    }
    /* memmove: nothing keeps a caller from handing over a buffer that lies in the region. */
    if (copy->is_read) {
        memmove(copy->local.buf, copy->remote, (size_t)copy->local.len);
    } else {
        memmove(copy->remote, copy->local.buf, (size_t)copy->local.len);
    }
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(entry->word, memory_order_relaxed) == entry->number;
}

static PyObject *one(Port *port, PyObject *const *arguments, Py_ssize_t count, bool is_read)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "key, offset and buffer are needed");
        return NULL;
    }
    Copy copy;
    bool done = false;
    if (alive(port) && prepare(port, arguments[0], arguments[1], arguments[2], is_read, &copy)) {
        done = copy.local.len <= MAX_BYTES && carry_out(&copy);
        PyBuffer_Release(&copy.local);
    }
    return PyBool_FromLong(done);
}

static PyObject *port_read(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return one((Port *)self, arguments, count, true);
}

static PyObject *port_write(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return one((Port *)self, arguments, count, false);
}

static bool prepare_operation(Port *port, PyObject *operation, Copy *copy)
{
    Parts parts;
    if (!parts_hold(&parts, &port->names, operation)) {
        return false;
    }
    bool good = prepare(port, parts.key, parts.offset, parts.buffer, parts.is_read, copy);
    parts_release(&parts);
    return good;
}

/* Carry out a list or tuple of operations: how many are complete, -1 when all is left to Python. */
static PyObject *port_batch(PyObject *self, PyObject *operations)
{
    Port *port = (Port *)self;
    bool is_list = PyList_CheckExact(operations);
    if (!is_list && !PyTuple_CheckExact(operations)) {
        return PyLong_FromLong(-1);
    }
    Py_ssize_t count = is_list ? PyList_Size(operations) : PyTuple_Size(operations);
    if (count > MAX_OPERATIONS || !alive(port)) {
        return PyLong_FromLong(-1);
    }
    Copy *copies = PyMem_Malloc((size_t)(count ? count : 1) * sizeof *copies);
    if (copies == NULL) {
        return PyErr_NoMemory();
    }
    Py_ssize_t prepared = 0, done = 0;
    int64_t bytes = 0;
    uint64_t changes = port->changes;
    /* A buffer of Python code may change the list while it is asked: look at its length each time. */
    while (prepared < count && (!is_list || PyList_Size(operations) == count)) {
        PyObject *operation = is_list ? PyList_GetItem(operations, prepared) : PyTuple_GetItem(operations, prepared);
        Py_XINCREF(operation);
        bool good = operation != NULL && prepare_operation(port, operation, &copies[prepared]);
        Py_XDECREF(operation);
        if (!good) {
            break;
        }
        bytes += copies[prepared].local.len;
        prepared++;
        if (bytes > MAX_BYTES) {
            break;
        }
    }
    if (prepared == count && bytes <= MAX_BYTES && port->changes == changes) {
        while (done < count && carry_out(&copies[done])) {
            done++;
        }
    } else {
        done = -1;
    }
    for (Py_ssize_t each = 0; each < prepared; each++) {
        PyBuffer_Release(&copies[each].local);
    }
    PyMem_Free(copies);
    return PyLong_FromSsize_t(done);
}

static void drop(Port *port, Entry *entry)
{
    Entry was = *entry;
    entry->key = NULL;
    port->changes++;
    PyBuffer_Release(&was.region);
    PyBuffer_Release(&was.control);
    Py_DECREF(was.key);
}

/* add(key, region, control, slot, number): whether there was room; without, its accesses are Python's. */
static PyObject *port_add(PyObject *self, PyObject *arguments)
{
    Port *port = (Port *)self;
    PyObject *key, *region, *control;
    Py_ssize_t slot;
    unsigned long long number;
    if (!PyArg_ParseTuple(arguments, "OOOnK", &key, &region, &control, &slot, &number)) {
        return NULL;
    }
    Entry *entry = find(port, key) == NULL ? probe(port, key, NULL) : NULL;
    if (entry == NULL) {
        return PyBool_FromLong(0);
    }
    Entry made = {.number = number};
    if (PyObject_GetBuffer(region, &made.region, PyBUF_WRITABLE) != 0) {
        return NULL;
    }
    if (PyObject_GetBuffer(control, &made.control, PyBUF_SIMPLE) != 0) {
        PyBuffer_Release(&made.region);
        return NULL;
    }
    if (slot < 0 || slot >= made.control.len / (Py_ssize_t)sizeof(uint64_t) || entry->key != NULL) {
        PyBuffer_Release(&made.region);
        PyBuffer_Release(&made.control);
        PyErr_SetString(PyExc_ValueError, "the control page has no such word");
        return NULL;
    }
    made.word = (const _Atomic uint64_t *)made.control.buf + slot;
    made.key = Py_NewRef(key);
    *entry = made;
    port->changes++;
    return PyBool_FromLong(1);
}

/* remove(key): let go of its window; nothing when it is not there. */
static PyObject *port_remove(PyObject *self, PyObject *key)
{
    Entry *entry = find((Port *)self, key);
    if (entry != NULL) {
        drop((Port *)self, entry);
    }
    Py_RETURN_NONE;
}

static PyObject *port_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    int fd;
    PyObject *read_type, *write_type;
    if (names != NULL && PyDict_Size(names)) {
        PyErr_SetString(PyExc_TypeError, "Port takes no named arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "iOO", &fd, &read_type, &write_type)) {
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Port *port = (Port *)allocate(type, 0); /* zeroed */
    if (port == NULL) {
        return NULL;
    }
    port->fd = fd;
    if (!names_hold(&port->names, read_type, write_type)) {
        Py_DECREF(port);
        return NULL;
    }
    return (PyObject *)port;
}

static void port_dealloc(PyObject *self)
{
    Port *port = (Port *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (size_t at = 0; at < ENTRIES; at++) {
        if (port->entries[at].key != NULL) {
            drop(port, &port->entries[at]);
        }
    }
    names_release(&port->names);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef port_methods[] = {
    {"add", port_add, METH_VARARGS, "add(key, region, control, slot, number): know a window; whether there was room."},
    {"remove", port_remove, METH_O, "remove(key): forget a window, before it is unmapped."},
    {"read", METHOD(port_read), METH_FASTCALL, "read(key, offset, into): whether it was done."},
    {"write", METHOD(port_write), METH_FASTCALL, "write(key, offset, data): whether it was done."},
    {"batch", port_batch, METH_O, "batch(operations): how many are complete, -1 for nothing done."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot port_slots[] = {
    {Py_tp_new, port_new},
    {Py_tp_dealloc, port_dealloc},
    {Py_tp_methods, port_methods},
    {Py_tp_doc, "Port(fd, read_type, write_type): accesses of one link. `fd` is its socket, and stays the link's."},
    {0, NULL},
};

static PyType_Spec port_spec = {
    .name = "pondstack_rdma._native.Port",
    .basicsize = sizeof(Port),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = port_slots,
};

static int fill(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&port_spec);
    int failed = type == NULL || PyModule_AddObjectRef(module, "Port", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyMethodDef module_methods[] = {
    {"watch", watch, METH_VARARGS, "watch(buffer, known, pause_seconds, looks): whether they differ, by then."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill},
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pondstack_rdma._native",
    .m_doc = "The hot path of shared memory.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&module);
}
