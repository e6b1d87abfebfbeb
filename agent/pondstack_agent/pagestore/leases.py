"""Which buffers a page store uses, by lender, index and key; what it gave up it never takes again.

Writes of before may still be under way to the memory of a key that was given up: it may be zeros, or another's.
"""

import threading
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

from pondstack.domain.errors import InUse, NotFound
from pondstack_rdma.base import Transport
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.store.leased_region import Lease
from pondstack_rdma.store.pages import RemotePages
from pondstack_rdma.store.peer import PeerState


@dataclass(frozen=True, slots=True)
class Name:
    """Of one buffer under one key."""

    lender: str
    """One incarnation of a lender."""
    index: int
    number: int
    """Of the key."""


class Leases:
    """Of one page store. `ended` has to be told of each lease that nothing uses any more (Mover's on_free)."""

    def __init__(self, transport: Transport, access_seconds: float) -> None:
        self._transport, self._seconds = transport, access_seconds
        self._lock = threading.Lock()
        self._used: dict[Name, Lease] = {}
        self._ended: set[Name] = set()
        self._pages: RemotePages | None = None

    def serve(self, pages: RemotePages) -> None:
        """Add leases to these pages from now on."""
        self._pages = pages

    def ended(self, lease: Lease) -> None:
        """Nothing uses a lease any more."""
        with self._lock:
            for name in [name for name, each in self._used.items() if each == lease]:
                del self._used[name]
                self._ended.add(name)

    def arrive(self, lender: str, ticket: Mapping[str, Any], keys: Mapping[str, Any]) -> list[int]:
        """Use buffers from soon on; returns those in use. One that was given up before is not among them."""
        connect = partial(self._transport.connect, Ticket.from_dict(ticket), self._seconds)
        wanted = {int(index): Key.from_dict(key) for index, key in keys.items()}
        found = []
        for index, key in wanted.items():
            name, lease = Name(lender, index, key.number), Lease(lender, key, connect)
            with self._lock:
                if name in self._ended:
                    continue
                new = self._used.setdefault(name, lease) is lease
            if new:
                self._add(lease)
            found.append(index)
        self._connect_soon(lender, connect)
        return found

    def leave(self, lender: str, numbers: Mapping[str, int], leave_seconds: float, wait_seconds: float) -> list[int]:
        """Stop using buffers, given with the numbers of their keys; returns those still in use after `wait_seconds`."""
        names = [Name(lender, int(index), number) for index, number in numbers.items()]
        left = []
        for name in names:
            with self._lock:
                lease = self._used.get(name)
                if lease is None:
                    self._ended.add(name)
            if lease is not None and not self._leave(lease, leave_seconds, wait_seconds):
                left.append(name.index)
        return left

    def lost(self, lender: str) -> None:
        """A lender is said not to answer: look at its link, so that its pages go elsewhere if that is so."""
        for peer in self._served().places.peers():
            if peer.name == lender:
                peer.probe()
        self._served().on_work()

    def view(self) -> dict[str, list[list[Any]]]:
        """Return [lender, index, number of the key] of what is used, and of what was given up."""
        with self._lock:
            return {
                "used": [list(astuple(each)) for each in self._used],
                "ended": [list(astuple(each)) for each in self._ended],
            }

    def _served(self) -> RemotePages:
        if self._pages is None:
            raise NotFound("no pages are served yet")
        return self._pages

    def _add(self, lease: Lease) -> None:
        try:
            self._served().add(lease)
        except InUse:
            return  # by another name: its buffer was numbered anew

    def _leave(self, lease: Lease, leave_seconds: float, wait_seconds: float) -> bool:
        pages = self._served()
        try:
            if not any(each.lease == lease and each.ends_at for each in pages.places.holdings()):
                pages.reclaim(lease, leave_seconds)  # once: its time must not begin anew with each question
        except NotFound:
            pass  # it ended meanwhile
        if not pages.wait_free(lease, wait_seconds):
            return False
        self.ended(lease)
        return True

    def _connect_soon(self, lender: str, connect: Any) -> None:
        for peer in self._served().places.peers():
            if peer.name == lender and peer.state is PeerState.DOWN:
                peer.replace(connect)
        self._served().on_work()
