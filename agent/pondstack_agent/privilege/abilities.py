"""Which of root's abilities this process keeps (capabilities(7)), for good and for all that it starts."""

import ctypes
import os
from collections.abc import Collection

from oslo_privsep import capabilities

_CAPBSET_READ, _CAPBSET_DROP, _SET_NO_NEW_PRIVS = 23, 24, 38  # linux/prctl.h
_LIBC = ctypes.CDLL(None, use_errno=True)


def keep(kept: Collection[int], regained: Collection[int] | None = None) -> None:
    """Keep these capabilities of those that this process has, and lose all others; raises OSError.

    `regained`: those that it may have after it lost them, None for the same. Of a process that may not change what a
    later exec could give back, only its own are taken; it gets none by exec either, as programs with set-user-id give
    nothing from now on.
    """
    _prctl(_SET_NO_NEW_PRIVS, 1)
    if capabilities.CAP_SETPCAP in effective():
        left = kept if regained is None else regained
        for number in range(64):
            if number not in left and _LIBC.prctl(_CAPBSET_READ, number, 0, 0, 0) == 1:
                _prctl(_CAPBSET_DROP, number)
    mine = effective() & set(kept)
    capabilities.drop_all_caps_except(mine, mine, [])


def effective() -> set[int]:
    """Return the capabilities that this thread has."""
    return {int(number) for number in capabilities.get_caps()[0]}


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
