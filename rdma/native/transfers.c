/* PyObject_GetBuffer may run Python code, which may change the regions or the list of operations. So no pointer into them is
 * kept across it. */
#include "transfers.h"

enum { PROBES = 8 };

RemoteRegion *find_region(Requester *requester, const PyObject *key, const PyObject *wanted)
{
    size_t at = ((uintptr_t)key >> 4) % REGIONS;
    for (size_t step = 0; step < PROBES; step++) {
        RemoteRegion *region = &requester->regions[(at + step) % REGIONS];
        if (region->key == wanted) {
            return region;
        }
    }
    return NULL;
}

bool prepare(Requester *requester, unsigned each, PyObject *key, PyObject *offset, PyObject *buffer, bool is_read)
{
    long long at;
    Py_buffer *local = &requester->buffers[each];
    if (!access_hold(local, &at, offset, buffer, is_read)) {
        return false;
    }
    /* After the buffer, whose Python code may have removed regions. */
    const RemoteRegion *region = find_region(requester, key, key);
    uint64_t size = (uint64_t)local->len;
    if (region == NULL || at < 0 || (uint64_t)at > region->size || size > region->size - (uint64_t)at ||
        size > requester->conn.stage_bytes || requester->conn.ended) {
        PyBuffer_Release(local);
        return false;
    }
    requester->transfers[each] = (Transfer){.address = region->address + (uint64_t)at,
                                            .local = local->buf,
                                            .rkey = region->rkey,
                                            .size = (uint32_t)size,
                                            .is_read = is_read};
    return true;
}

static bool prepare_operation(Requester *requester, unsigned each, PyObject *operation)
{
    Parts parts;
    if (!parts_hold(&parts, &requester->names, operation)) {
        return false;
    }
    bool good = prepare(requester, each, parts.key, parts.offset, parts.buffer, parts.is_read);
    parts_release(&parts);
    return good;
}

unsigned prepare_all(Requester *requester, PyObject *operations, Py_ssize_t count)
{
    uint64_t bytes = 0;
    unsigned held = 0;
    /* The Python code of a buffer may change the list: check its length each time. */
    while (held < count && PySequence_Size(operations) == count) {
        PyObject *operation = PySequence_GetItem(operations, held);
        bool good = operation != NULL && prepare_operation(requester, held, operation);
        Py_XDECREF(operation);
        if (!good) {
            break;
        }
        bytes += requester->transfers[held].size;
        if (bytes > requester->conn.stage_bytes) {
            PyBuffer_Release(&requester->buffers[held]);
            break;
        }
        held++;
    }
    PyErr_Clear();
    return held;
}

unsigned prepare_requests(Requester *requester, PyObject *requests, Py_ssize_t count)
{
    uint64_t bytes = 0;
    unsigned held = 0;
    while (held < count) {
        int is_read;
        unsigned long long address;
        unsigned int rkey;
        PyObject *buffer;
        Py_buffer *local = &requester->buffers[held];
        PyObject *request = PyTuple_GetItem(requests, held);
        if (!PyTuple_Check(request)) {
            PyErr_SetString(PyExc_TypeError, "a request is a tuple");
            break;
        }
        if (!PyArg_ParseTuple(request, "pKIO", &is_read, &address, &rkey, &buffer) ||
            PyObject_GetBuffer(buffer, local, is_read ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) {
            break;
        }
        bytes += (uint64_t)local->len;
        if (bytes > requester->conn.stage_bytes) {
            PyBuffer_Release(local);
            PyErr_SetString(PyExc_ValueError, "more bytes than the staging memory has");
            break;
        }
        requester->transfers[held++] = (Transfer){
            .address = address, .local = local->buf, .rkey = rkey, .size = (uint32_t)local->len, .is_read = is_read};
    }
    return held;
}

void release(Requester *requester, unsigned count)
{
    for (unsigned each = 0; each < count; each++) {
        PyBuffer_Release(&requester->buffers[each]);
    }
}
