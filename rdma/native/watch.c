/* What a server's waiting for requests costs: one look is a comparison and a sleep, without Python in between, whose
 * lock is free meanwhile.
 */
#define _GNU_SOURCE
#include "watch.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

static const double NS = 1e9;

static bool differ(const Py_buffer *buffer, const Py_buffer *known, struct timespec pause, unsigned looks)
{
    for (unsigned look = 0; look < looks; look++) {
        if (memcmp(buffer->buf, known->buf, (size_t)known->len) != 0) {
            return true;
        }
        nanosleep(&pause, NULL); /* ended early by a signal: then the next look is early */
    }
    return memcmp(buffer->buf, known->buf, (size_t)known->len) != 0;
}

PyObject *watch(PyObject *module, PyObject *arguments)
{
    (void)module;
    Py_buffer buffer, known;
    double seconds;
    unsigned looks;
    if (!PyArg_ParseTuple(arguments, "y*y*dI", &buffer, &known, &seconds, &looks)) {
        return NULL;
    }
    bool changed = false;
    bool good = buffer.len == known.len && seconds >= 0.0 && seconds <= 1.0;
    if (good) {
        struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (time_t)seconds) * NS)};
        Py_BEGIN_ALLOW_THREADS
        changed = differ(&buffer, &known, pause, looks);
        Py_END_ALLOW_THREADS
    } else {
        PyErr_SetString(PyExc_ValueError, "as many bytes as are known, and a pause of a second at most");
    }
    PyBuffer_Release(&buffer);
    PyBuffer_Release(&known);
    return good ? PyBool_FromLong(changed) : NULL;
}
