/* From keys, offsets and buffers of Python to transfers. */
#ifndef PONDSTACK_TRANSFERS_H
#define PONDSTACK_TRANSFERS_H

#include "line.h"
#include "operation.h"

enum { WINDOWS = 1024 };

/* Where the lender's device has the region of a key. */
typedef struct {
    PyObject *key; /* NULL: free */
    uint64_t address, size;
    uint32_t rkey;
} Window;

typedef struct {
    PyObject_HEAD
    Names names;
    Line line;
    Py_buffer stage;
    Py_buffer *buffers; /* the local ones of the batch under way, and its transfers: room for `line.depth` each */
    Transfer *transfers;
    double seconds;
    bool busy;
    Window windows[WINDOWS];
} Requester;

/* Of the few windows that may be a key's, the one that holds `wanted`: the key, or NULL for a free one. */
Window *find_window(Requester *requester, const PyObject *key, const PyObject *wanted);

/* Hold the buffer of transfer `each` and describe it. False, with nothing held and no error set, when Python has to
 * look at it. */
bool prepare(Requester *requester, unsigned each, PyObject *key, PyObject *offset, PyObject *buffer, bool is_read);

/* Prepare a list or tuple of operations: how many are held; all of them when that equals its length. */
unsigned prepare_all(Requester *requester, PyObject *operations, Py_ssize_t count);

/* Prepare a tuple of (is_read, address, rkey, buffer) each: how many are held. Sets an error when it is fewer. */
unsigned prepare_requests(Requester *requester, PyObject *requests, Py_ssize_t count);

/* Let go of the first `count` buffers. */
void release(Requester *requester, unsigned count);

#endif
