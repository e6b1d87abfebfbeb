"""Write-back of this host's CPU caches over memory that another host reads next; native (rdma/native/cpu_cache.c)."""

import importlib
from collections.abc import Callable


def _native() -> tuple[Callable[[memoryview], None], str]:
    """Return what writes back, and the instruction that does it; "": nothing does, on such a CPU or wheel."""
    try:
        module = importlib.import_module("pondstack_rdma._cpu_cache")
    except ImportError:
        return _missing, ""
    return module.write_back, str(module.instruction())


def _missing(_memory: memoryview) -> None:
    raise OSError("the wheel was built without a compiler, and has no pondstack_rdma._cpu_cache")


_WRITE_BACK, INSTRUCTION = _native()
"""By name, which instruction of this CPU writes back; "": none, and `write_back` raises OSError."""


def write_back(memory: memoryview) -> None:
    """Have all lines of a mapping written back and dropped, of whatever process or guest; raises OSError.

    Returns once they are in memory. It takes about as long as reading the mapping does.
    """
    _WRITE_BACK(memory)
