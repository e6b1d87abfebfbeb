/* Helpers for types of the limited API: allocation and errors. */
#ifndef PONDSTACK_OBJECT_H
#define PONDSTACK_OBJECT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdbool.h>

static inline PyObject *failed(int error)
{
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static inline bool is_open(const void *what)
{
    if (what == NULL) {
        PyErr_SetString(PyExc_ValueError, "it is closed");
    }
    return what != NULL;
}

static inline void *allocate(PyTypeObject *type)
{
    return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0); /* zeroed */
}

static inline void give_back(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static inline PyObject *finished(int result)
{
    if (result != 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

#endif
