/* Makes transfers of keys, offsets and buffers of Python. */
#ifndef PONDSTACK_TRANSFERS_H
#define PONDSTACK_TRANSFERS_H

#include "links/rc_conn.h"
#include "operation.h"

enum { REGIONS = 1024 };

/* The address and the rkey under which the lender's device serves the region of a key. */
typedef struct {
    PyObject *key; /* NULL: this entry is free */
    uint64_t address, size;
    uint32_t rkey;
} RemoteRegion;

typedef struct {
    PyObject_HEAD
    Names names;
    RcConn conn;
    Py_buffer stage;
    Py_buffer *buffers; /* the local buffers of the current batch, and its transfers; both have `conn.depth` elements */
    Transfer *transfers;
    double seconds;
    bool busy;
    RemoteRegion regions[REGIONS];
} Requester;

/* Among the few entries in which `key` may be, return the one that holds `wanted`: the key, or NULL for a free entry. */
RemoteRegion *find_region(Requester *requester, const PyObject *key, const PyObject *wanted);

/* Hold the buffer of transfer `each` and fill in the transfer. False, with nothing held and no error set: the access is left
 * to Python. */
bool prepare(Requester *requester, unsigned each, PyObject *key, PyObject *offset, PyObject *buffer, bool is_read);

/* Prepare a list or tuple of operations. Return how many are held; fewer than its length: the batch is left to Python. */
unsigned prepare_all(Requester *requester, PyObject *operations, Py_ssize_t count);

/* Prepare a tuple of (is_read, address, rkey, buffer). Return how many are held; sets an error if not all are. */
unsigned prepare_requests(Requester *requester, PyObject *requests, Py_ssize_t count);

/* Release the first `count` buffers. */
void release(Requester *requester, unsigned count);

#endif
