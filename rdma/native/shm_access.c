/* The hot path of shared memory: an access is a copy between two reads of the key's word.
 *
 * A ShmAccess finds the mapped windows of one link by the identity of their keys. Each method carries out the access, or
 * does nothing and says so. Unusual accesses (an unknown or revoked key, bounds, a dead lender, odd buffers) are left to the
 * Python code, which raises the right error. So no rule is written twice.
 *
 * Memory and threads: a method holds the interpreter's lock, also while it copies, so no window can be unmapped meanwhile.
 * That is why the bytes of a call are bounded. Another process writes the words: they are read as atomics, with acquire
 * before the copy, and after a fence behind it.
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
static const int64_t POLL_NS = 1000000; /* the lender's socket is polled once a millisecond */
static const int64_t MAX_BYTES = 4 << 20; /* in one call, because it holds the interpreter's lock */

/* A mapped window. It holds both buffers, so that neither can be unmapped before `remove`. */
typedef struct {
    PyObject *key; /* NULL: this entry is free */
    Py_buffer region;
    Py_buffer control;
    const _Atomic uint64_t *word;
    uint64_t key_number;
} Entry;

typedef struct {
    PyObject_HEAD
    Names names;
    int fd;
    int64_t polled_ns;
    uint64_t changes; /* incremented when an entry changes */
    Entry entries[ENTRIES];
} ShmAccess;

/* A copy whose bounds have been checked. */
typedef struct {
    Py_buffer local;
    const Entry *entry;
    char *remote;
    bool is_read;
} Copy;

/* Among the few entries in which `key` may be, return the one that holds `wanted`: the key, or NULL for a free entry. */
static Entry *probe(ShmAccess *access, const PyObject *key, const PyObject *wanted)
{
    size_t at = ((uintptr_t)key >> 4) % ENTRIES;
    for (size_t step = 0; step < PROBES; step++) {
        Entry *entry = &access->entries[(at + step) % ENTRIES];
        if (entry->key == wanted) {
            return entry;
        }
    }
    return NULL;
}

static Entry *find(ShmAccess *access, const PyObject *key)
{
    return probe(access, key, key);
}

/* Tell whether the lender's socket was still open at the last poll, at most a millisecond ago. */
static bool alive(ShmAccess *access)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (now_ns - access->polled_ns < POLL_NS) {
        return true;
    }
    struct pollfd fd = {.fd = access->fd, .events = POLLRDHUP};
    if (poll(&fd, 1, 0) != 0) {
        return false;
    }
    access->polled_ns = now_ns;
    return true;
}

/* Prepare a copy. False, with nothing held and no error set: the access is left to Python. */
static bool prepare(ShmAccess *access, PyObject *key, PyObject *offset, PyObject *buffer, bool is_read, Copy *copy)
{
    long long at;
    if (!access_hold(&copy->local, &at, offset, buffer, is_read)) {
        return false;
    }
    /* After the buffer, whose Python code may have removed windows. */
    const Entry *entry = find(access, key);
    if (entry == NULL || at < 0 || at > entry->region.len || copy->local.len > entry->region.len - at) {
        PyBuffer_Release(&copy->local);
        return false;
    }
    copy->entry = entry;
    copy->remote = (char *)entry->region.buf + at;
    copy->is_read = is_read;
    return true;
}

/* Carry out a copy. False: the key was revoked, before or during it. */
static bool carry_out(const Copy *copy)
{
    const Entry *entry = copy->entry;
    if (atomic_load_explicit(entry->word, memory_order_acquire) != entry->key_number) {
        return false;
    }
    /* memmove, because the caller's buffer may lie in the region. */
    if (copy->is_read) {
        memmove(copy->local.buf, copy->remote, (size_t)copy->local.len);
    } else {
        memmove(copy->remote, copy->local.buf, (size_t)copy->local.len);
    }
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(entry->word, memory_order_relaxed) == entry->key_number;
}

static PyObject *one(ShmAccess *access, PyObject *const *arguments, Py_ssize_t count, bool is_read)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "key, offset and buffer are needed");
        return NULL;
    }
    Copy copy;
    bool done = false;
    if (alive(access) && prepare(access, arguments[0], arguments[1], arguments[2], is_read, &copy)) {
        done = copy.local.len <= MAX_BYTES && carry_out(&copy);
        PyBuffer_Release(&copy.local);
    }
    return PyBool_FromLong(done);
}

static PyObject *shm_access_read(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return one((ShmAccess *)self, arguments, count, true);
}

static PyObject *shm_access_write(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return one((ShmAccess *)self, arguments, count, false);
}

static bool prepare_operation(ShmAccess *access, PyObject *operation, Copy *copy)
{
    Parts parts;
    if (!parts_hold(&parts, &access->names, operation)) {
        return false;
    }
    bool good = prepare(access, parts.key, parts.offset, parts.buffer, parts.is_read, copy);
    parts_release(&parts);
    return good;
}

/* Carry out a list or tuple of operations. Return how many are complete; -1: the batch is left to Python. */
static PyObject *shm_access_batch(PyObject *self, PyObject *operations)
{
    ShmAccess *access = (ShmAccess *)self;
    bool is_list = PyList_CheckExact(operations);
    if (!is_list && !PyTuple_CheckExact(operations)) {
        return PyLong_FromLong(-1);
    }
    Py_ssize_t count = is_list ? PyList_Size(operations) : PyTuple_Size(operations);
    if (count > MAX_OPERATIONS || !alive(access)) {
        return PyLong_FromLong(-1);
    }
    Copy *copies = PyMem_Malloc((size_t)(count ? count : 1) * sizeof *copies);
    if (copies == NULL) {
        return PyErr_NoMemory();
    }
    Py_ssize_t prepared = 0, done = 0;
    int64_t bytes = 0;
    uint64_t changes = access->changes;
    /* The Python code of a buffer may change the list: check its length each time. */
    while (prepared < count && (!is_list || PyList_Size(operations) == count)) {
        PyObject *operation = is_list ? PyList_GetItem(operations, prepared) : PyTuple_GetItem(operations, prepared);
        Py_XINCREF(operation);
        bool good = operation != NULL && prepare_operation(access, operation, &copies[prepared]);
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
    if (prepared == count && bytes <= MAX_BYTES && access->changes == changes) {
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

static void drop(ShmAccess *access, Entry *entry)
{
    Entry was = *entry;
    entry->key = NULL;
    access->changes++;
    PyBuffer_Release(&was.region);
    PyBuffer_Release(&was.control);
    Py_DECREF(was.key);
}

/* add(key, region, control, slot, key_number): add a window. False: the table has no room, and its accesses are left to
 * Python. */
static PyObject *shm_access_add(PyObject *self, PyObject *arguments)
{
    ShmAccess *access = (ShmAccess *)self;
    PyObject *key, *region, *control;
    Py_ssize_t slot;
    unsigned long long key_number;
    if (!PyArg_ParseTuple(arguments, "OOOnK", &key, &region, &control, &slot, &key_number)) {
        return NULL;
    }
    Entry *entry = find(access, key) == NULL ? probe(access, key, NULL) : NULL;
    if (entry == NULL) {
        return PyBool_FromLong(0);
    }
    Entry made = {.key_number = key_number};
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
    access->changes++;
    return PyBool_FromLong(1);
}

/* remove(key): remove a window and release its buffers; idempotent. */
static PyObject *shm_access_remove(PyObject *self, PyObject *key)
{
    Entry *entry = find((ShmAccess *)self, key);
    if (entry != NULL) {
        drop((ShmAccess *)self, entry);
    }
    Py_RETURN_NONE;
}

static PyObject *shm_access_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    int fd;
    PyObject *read_type, *write_type;
    if (names != NULL && PyDict_Size(names)) {
        PyErr_SetString(PyExc_TypeError, "ShmAccess takes no named arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "iOO", &fd, &read_type, &write_type)) {
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    ShmAccess *access = (ShmAccess *)allocate(type, 0); /* zeroed */
    if (access == NULL) {
        return NULL;
    }
    access->fd = fd;
    if (!names_hold(&access->names, read_type, write_type)) {
        Py_DECREF(access);
        return NULL;
    }
    return (PyObject *)access;
}

static void shm_access_dealloc(PyObject *self)
{
    ShmAccess *access = (ShmAccess *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (size_t at = 0; at < ENTRIES; at++) {
        if (access->entries[at].key != NULL) {
            drop(access, &access->entries[at]);
        }
    }
    names_release(&access->names);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef shm_access_methods[] = {
    {"add", shm_access_add, METH_VARARGS, "add(key, region, control, slot, key_number): add a window. False: no room."},
    {"remove", shm_access_remove, METH_O, "remove(key): remove a window, before it is unmapped."},
    {"read", METHOD(shm_access_read), METH_FASTCALL, "read(key, offset, into): True if it was carried out."},
    {"write", METHOD(shm_access_write), METH_FASTCALL, "write(key, offset, data): True if it was carried out."},
    {"batch", shm_access_batch, METH_O, "batch(operations): how many are complete; -1: none was begun."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot shm_access_slots[] = {
    {Py_tp_new, shm_access_new},
    {Py_tp_dealloc, shm_access_dealloc},
    {Py_tp_methods, shm_access_methods},
    {Py_tp_doc, "ShmAccess(fd, read_type, write_type): accesses of one link. `fd` is its socket, and stays the link's."},
    {0, NULL},
};

static PyType_Spec shm_access_spec = {
    .name = "pondstack_rdma._native.ShmAccess",
    .basicsize = sizeof(ShmAccess),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = shm_access_slots,
};

static int fill(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&shm_access_spec);
    int failed = type == NULL || PyModule_AddObjectRef(module, "ShmAccess", type);
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
