"""The memory that a kernel works on: the first part local, the rest in the pool, as a zNUMA guest has it."""

import ctypes
import mmap
from typing import Any, Protocol

from pondstack.domain.errors import HostUnusable
from pondstack_agent.sampler import numa

PAGE = mmap.PAGESIZE
LINE = 64
LOOKED_AT = 512
"""Pages that are looked up to see where the memory really is."""


class Placement(Protocol):
    """Binds memory to a node, and says where it is; pondstack_agent.sampler.numa does."""

    def bind(self, address: int, size: int, node: int) -> None:
        """Bind a range."""

    def where(self, addresses: list[int]) -> list[int]:
        """Return the node of each page."""


class Arena:
    """Anonymous memory from which arrays are taken one after the other. close() when no array is used any more."""

    def __init__(
        self, size: int, spill_percent: float, local: int, pool: int, placement: Placement | Any = numa
    ) -> None:
        """Take `size` bytes, the last `spill_percent` of them on node `pool`. Raises HostUnusable."""
        pages = -(-size // PAGE)
        self._size, self._used = pages * PAGE, 0
        self._local_bytes = pages * PAGE - round(pages * spill_percent / 100) * PAGE
        self._nodes, self._placement = (local, pool), placement
        self._memory = mmap.mmap(-1, self._size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        if self._local_bytes:
            placement.bind(self._address, self._local_bytes, local)
        if self._local_bytes < self._size:
            placement.bind(self._address + self._local_bytes, self._size - self._local_bytes, pool)

    @property
    def used(self) -> int:
        """Return the bytes that arrays were taken of."""
        return self._used

    def array(self, count: int, kind: str) -> Any:
        """Return an array of numpy's `kind`. Raises ValueError where the arena is too small."""
        import numpy

        made = numpy.frombuffer(self._memory, dtype=kind, count=count, offset=self._used)
        self._used += -(-made.nbytes // LINE) * LINE
        return made

    def view(self) -> memoryview:
        """Return the used memory as whole numbers of 8 bytes."""
        return memoryview(self._memory)[: self._used // 8 * 8].cast("q")

    def check(self) -> None:
        """Raise HostUnusable where the memory is not where it was bound to."""
        step = max(1, self._used // PAGE // LOOKED_AT)
        offsets = [page * PAGE for page in range(0, self._used // PAGE, step)]
        for offset, node in zip(
            offsets, self._placement.where([self._address + item for item in offsets]), strict=True
        ):
            wanted = self._nodes[0] if offset < self._local_bytes else self._nodes[1]
            if node not in (wanted, -2):  # -ENOENT: nobody touched it
                raise HostUnusable(f"memory that was bound to node {wanted} is on node {node}: is that node full?")
