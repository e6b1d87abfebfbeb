#include "operation.h"

bool names_hold(Names *names, PyObject *read_type, PyObject *write_type)
{
    names->read_type = Py_NewRef(read_type);
    names->write_type = Py_NewRef(write_type);
    names->key = PyUnicode_InternFromString("key");
    names->offset = PyUnicode_InternFromString("offset");
    names->into = PyUnicode_InternFromString("into");
    names->data = PyUnicode_InternFromString("data");
    return names->key && names->offset && names->into && names->data;
}

void names_release(Names *names)
{
    Py_CLEAR(names->read_type);
    Py_CLEAR(names->write_type);
    Py_CLEAR(names->key);
    Py_CLEAR(names->offset);
    Py_CLEAR(names->into);
    Py_CLEAR(names->data);
}

bool parts_hold(Parts *parts, const Names *names, PyObject *operation)
{
    PyObject *type = (PyObject *)Py_TYPE(operation);
    bool is_read = type == names->read_type;
    if (!is_read && type != names->write_type) {
        return false;
    }
    *parts = (Parts){.key = PyObject_GetAttr(operation, names->key),
                     .offset = PyObject_GetAttr(operation, names->offset),
                     .buffer = PyObject_GetAttr(operation, is_read ? names->into : names->data),
                     .is_read = is_read};
    PyErr_Clear();
    bool good = parts->key && parts->offset && parts->buffer;
    if (!good) {
        parts_release(parts);
    }
    return good;
}

void parts_release(Parts *parts)
{
    Py_CLEAR(parts->key);
    Py_CLEAR(parts->offset);
    Py_CLEAR(parts->buffer);
}

bool access_hold(Py_buffer *local, long long *at, PyObject *offset, PyObject *buffer, bool is_read)
{
    bool good = PyLong_Check(offset);
    if (good) {
        *at = PyLong_AsLongLong(offset);
        good = !(*at == -1 && PyErr_Occurred()) &&
               PyObject_GetBuffer(buffer, local, is_read ? PyBUF_WRITABLE : PyBUF_SIMPLE) == 0;
        PyErr_Clear();
    }
    return good;
}
