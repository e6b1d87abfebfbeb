"""Imports pyverbs, which no other module does, and has the constants of verbs that we use; their values are kernel ABI.

pyverbs has to be the distribution's python3-pyverbs, because its private ABI belongs to the installed rdma-core
libraries.
"""

import logging
from enum import IntFlag
from functools import cache
from types import SimpleNamespace

from pondstack_rdma.errors import NoDevice

ROCE_V2 = 2
"""A GID type."""

PORT_ACTIVE = 4
RELIABLE_CONNECTION = 2
"""A queue pair type."""


class Access(IntFlag):
    """The access rights of a memory region or a queue pair."""

    NOTHING = 0
    LOCAL_WRITE = 1
    REMOTE_WRITE = 2
    REMOTE_READ = 4


@cache
def load() -> SimpleNamespace:
    """Return the classes of pyverbs that we use, and its Error; raises NoDevice."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        from pyverbs.addr import GID, AHAttr, GlobalRoute
        from pyverbs.cq import CQ
        from pyverbs.device import Context, get_device_list
        from pyverbs.mr import MR
        from pyverbs.pd import PD
        from pyverbs.pyverbs_error import PyverbsError
        from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
    except ImportError as error:
        raise NoDevice(
            f"the verbs transport needs the distribution's python3-pyverbs ({error}); `python3 -c 'import pyverbs.qp'` "
            "shows what is missing"
        ) from error
    finally:
        # pyverbs configures logging when it is imported.
        root.handlers[:] = handlers
        root.setLevel(level)
    return SimpleNamespace(
        AHAttr=AHAttr,
        Context=Context,
        CQ=CQ,
        Error=PyverbsError,
        get_device_list=get_device_list,
        GID=GID,
        GlobalRoute=GlobalRoute,
        MR=MR,
        PD=PD,
        QP=QP,
        QPAttr=QPAttr,
        QPCap=QPCap,
        QPInitAttr=QPInitAttr,
    )
