/* Waiting until memory that others write is not what it was. */
#ifndef PONDSTACK_WATCH_H
#define PONDSTACK_WATCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* watch(buffer, known, pause_seconds, looks): whether they differ; looks that often, with pauses, until they do. */
PyObject *watch(PyObject *module, PyObject *arguments);

#endif
