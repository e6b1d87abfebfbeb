"""Writing an attribute of the kernel (sysfs, procfs). What may be written the caller has judged."""

import os


def write(path: str, text: str) -> str:
    """Write a text in one write(2), as attributes want it; return '' or what the kernel said."""
    try:
        handle = os.open(path, os.O_WRONLY)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)
    except OSError as error:
        return error.strerror or str(error)
    return ""
