"""No core dump of a process that has keys, passwords or tenants' pages in its memory."""

import ctypes
import os
import resource

_PR_SET_DUMPABLE = 4  # linux/prctl.h
_FILTER = "/proc/self/coredump_filter"
_NO_MEMORY = "0"
_LIBC = ctypes.CDLL(None, use_errno=True)


def forbid() -> None:
    """Leave no core dump of this process from now on; raises OSError.

    Three times, as each alone has a gap: the limit is not asked where core_pattern is a pipe, root may attach a
    debugger to a process that is not dumpable, and the filter says only which memory a dump has. A process that is
    not dumpable can also be looked into by no other process of its user.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Before the process is not dumpable: afterwards the file is root's.
    with open(_FILTER, "w") as file:
        file.write(_NO_MEMORY)
    if _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
