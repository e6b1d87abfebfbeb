"""One lease, and which page each of its slots has. It has no lock of its own: PageMap holds one while it uses it."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from pondstack_rdma.base import Link
from pondstack_rdma.model import Key
from pondstack_rdma.sealing import PAGE_BYTES
from pondstack_rdma.store.peer import Peer

_FREE = -1
_RETIRED = -2


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to one region of a lender. `connect` links to that lender, and raises PondError."""

    lender: str
    key: Key
    connect: Callable[[], Link] = field(compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.lender, self.key))


class HoldingState(StrEnum):
    """What a lease is good for."""

    ACTIVE = "active"
    DRAINING = "draining"
    """Its lender wants it back: pages move off, and are read meanwhile."""
    LOST = "lost"
    """Its lender has taken it back or does not know it: nothing on it can be read."""


class LeasedRegion:
    """Slots of one page each."""

    def __init__(self, number: int, lease: Lease, peer: Peer) -> None:
        self.number = number
        self.lease = lease
        self.peer = peer
        self.state = HoldingState.ACTIVE
        self.ends_at = 0.0
        """When what is still on it is given up to the mirror; of one that drains."""
        self.used = 0
        """Slots with a page, or on the way to one."""
        count = lease.key.size_bytes // PAGE_BYTES
        self._pages = array("q", [_FREE]) * count
        self._free = array("q", range(count - 1, -1, -1))

    @property
    def free(self) -> int:
        """Slots that can be taken."""
        return len(self._free)

    def take(self, page: int) -> int:
        """Take a free slot for a page."""
        slot = self._free.pop()
        self._pages[slot] = page
        self.used += 1
        return slot

    def release(self, slot: int, page: int) -> None:
        """Free the slot of a page; not when it was retired meanwhile."""
        if self._pages[slot] == page:
            self._pages[slot] = _FREE
            self._free.append(slot)
            self.used -= 1

    def retire(self, slot: int, page: int) -> None:
        """Never use a slot again: a write that nobody answered may still come, over whatever is there by then."""
        if self._pages[slot] == page:
            self._pages[slot] = _RETIRED
            self.used -= 1

    def has(self, slot: int, page: int) -> bool:
        """Whether a slot is a page's, and not retired."""
        return self._pages[slot] == page

    def pages(self) -> Iterator[int]:
        """Yield the pages that are on it."""
        return (page for page in self._pages if page >= 0)

    @staticmethod
    def offset(slot: int) -> int:
        """Where a slot begins in the region, in bytes."""
        return slot * PAGE_BYTES


SlotRef = tuple[LeasedRegion, int]
"""A holding and a slot of it."""
