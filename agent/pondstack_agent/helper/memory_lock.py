"""All memory of a helper locked in RAM: keys and tenants' pages never reach swap.

Not the keys alone: Python and OpenSSL keep copies of a key, and of each page under way, where they please.
"""

import ctypes
import os
import resource

from oslo_privsep import capabilities

from pondstack_agent.privilege import abilities

_CURRENT, _FUTURE, _ON_FAULT = 1, 2, 4
"""MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT: what is there, what comes, and pages only once they are used."""
_LIBC = ctypes.CDLL(None, use_errno=True)


def lock() -> str:
    """Lock all memory of this process, now and later; return '' or why it may reach swap, and what to do.

    Not where a limit is set: each mapping beyond it would fail in the middle of the work.
    """
    _, limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if not _unlimited(limit):
        return (
            f"at most {limit // 1024} KiB of this process may be locked in RAM: pages of tenants may reach swap. Set "
            "LimitMEMLOCK=infinity for the agent's service, which starts this process, or turn swap off"
        )
    if _LIBC.mlockall(_CURRENT | _FUTURE | _ON_FAULT):
        return f"the kernel locks no memory ({os.strerror(ctypes.get_errno())}): pages of tenants may reach swap"
    return ""


def _unlimited(limit: int) -> bool:
    """Raise the soft limit; tell whether there is none, or this process is above it."""
    if limit == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
        return True
    return capabilities.CAP_IPC_LOCK in abilities.effective()
