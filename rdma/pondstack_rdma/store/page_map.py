"""Which page lies where: the book of leases, lenders and pages.

`lock` guards all of it and is held during no I/O. Who changes the place of a page holds that page's lock as well
(locks.py), taken before this one; so a page whose lock one holds stays where it is.
"""

import random
import threading
from array import array
from collections.abc import Callable, Iterable

from pondstack.domain.errors import InUse, NotFound, PondError
from pondstack_rdma.errors import TransportGone
from pondstack_rdma.store.leased_region import HoldingState, Lease, LeasedRegion, SlotRef
from pondstack_rdma.store.peer import Peer, PeerState, Retry
from pondstack_rdma.store.policy import NEVER, NOWHERE, lease_of, pack_place, slot_of
from pondstack_rdma.store.slot_allocator import SlotAllocator


class PageMap:
    """Of the pages of one VM."""

    def __init__(self, pages: int, clock: Callable[[], float], dice: random.Random, retry: Retry) -> None:
        self.where = array("q", [NEVER]) * pages
        """By page: a packed place, or NOWHERE, NEVER, LOST. For reading it needs no lock."""
        self._lock = threading.Lock()
        self._clock, self._dice, self._retry = clock, dice, retry
        self._holdings: dict[int, LeasedRegion] = {}
        self._peers: dict[str, Peer] = {}
        self._last = 0
        self._nowhere = 0
        self.freed = threading.Condition(self._lock)
        """Told when a lease is free."""

    def add(self, lease: Lease) -> LeasedRegion:
        """Take a lease in; raises InUse when it is there."""
        with self._lock:
            if any(holding.lease == lease for holding in self._holdings.values()):
                raise InUse(f"key {lease.key.number} of lender {lease.lender} is in use already")
            peer = self._peers.get(lease.lender)
            if peer is None:
                peer = Peer(lease.lender, lease.connect, self._clock, self._dice, self._retry)
                self._peers[lease.lender] = peer
            else:
                peer.replace(lease.connect)
            self._last += 1
            holding = self._holdings[self._last] = LeasedRegion(self._last, lease, peer)
            return holding

    def find(self, page: int) -> SlotRef | None:
        """Return where a page can be read from a lender now."""
        place = self.where[page]
        if place < 0:
            return None
        with self._lock:
            holding = self._holdings.get(lease_of(place))
            if holding is None or holding.state is HoldingState.LOST or holding.peer.state is PeerState.DOWN:
                return None
            return holding, slot_of(place)

    def may_return(self, page: int) -> bool:
        """Whether the lender of a page is silent, but not known to have lost it."""
        with self._lock:
            holding = self._holdings.get(lease_of(self.where[page]))
            return holding is not None and holding.state is not HoldingState.LOST

    def plan(self, pages: Iterable[int], stay: bool) -> dict[int, SlotRef]:
        """Return where to write pages, as far as there is room: their own slots if they may `stay`, else new ones."""
        with self._lock:
            planned: dict[int, SlotRef] = {}
            room: SlotAllocator | None = None
            for page in pages:
                spot = self._own(page) if stay else None
                if spot is None:
                    room = room or SlotAllocator(self._holdings.values(), self._usable())
                    spot = room.take(page)
                if spot is not None:
                    planned[page] = spot
            return planned

    def settle(self, page: int, spot: SlotRef | None, otherwise: int = NOWHERE) -> None:
        """Write down where a page lies from now on, and free its former slot."""
        with self._lock:
            former = self.where[page]
            place = otherwise if spot is None else pack_place(spot[0].number, spot[1])
            if former == place:
                return
            self.where[page] = place
            self._nowhere += (place == NOWHERE) - (former == NOWHERE)
            if former >= 0 and (holding := self._holdings.get(lease_of(former))) is not None:
                holding.release(slot_of(former), page)

    def failed(self, spots: Iterable[tuple[int, SlotRef]], error: PondError) -> None:
        """Take note of accesses that failed: the first of them by `error`, the others with it."""
        with self._lock:
            for index, (page, (holding, slot)) in enumerate(spots):
                if isinstance(error, TransportGone):
                    holding.retire(slot, page)
                    continue
                if not index:
                    holding.state = HoldingState.LOST
                if self.where[page] != pack_place(holding.number, slot):  # its own slot it keeps, until it is settled
                    holding.release(slot, page)

    def lost(self, holding: LeasedRegion) -> None:
        """Nothing on a lease can be read any more."""
        with self._lock:
            holding.state = HoldingState.LOST

    def retire_slot(self, page: int, spot: SlotRef) -> None:
        """Never use a slot again."""
        with self._lock:
            spot[0].retire(spot[1], page)

    def drain(self, lease: Lease, ends_at: float) -> None:
        """Place nothing more on a lease; raises NotFound."""
        with self._lock:
            holding = self._holding_of(lease)
            if holding is None:
                raise NotFound(f"key {lease.key.number} of lender {lease.lender} is not in use")
            if holding.state is HoldingState.ACTIVE:
                holding.state = HoldingState.DRAINING
            holding.ends_at = ends_at

    def holds(self, lease: Lease) -> bool:
        """Whether a lease is in use; for those who hold `freed`."""
        return self._holding_of(lease) is not None

    def leaving(self, grace_seconds: float) -> set[int]:
        """Return the leases that pages have to move off: not ACTIVE, or of a lender that was silent for so long."""
        with self._lock:
            return {
                number
                for number, holding in self._holdings.items()
                if holding.state is not HoldingState.ACTIVE or holding.peer.down_seconds() > grace_seconds
            }

    def stranded(self) -> int:
        """Count the pages that are not readable from a lender, or soon will not be."""
        with self._lock:
            return self._nowhere + sum(
                holding.used
                for holding in self._holdings.values()
                if holding.state is not HoldingState.ACTIVE or holding.peer.state is PeerState.DOWN
            )

    def census(self) -> dict[str, int]:
        """Count pages by where they are: `remote`, `moving` (on a lease that ends or is silent), `mirror_only`."""
        with self._lock:
            remote = moving = 0
            for holding in self._holdings.values():
                if holding.state is HoldingState.ACTIVE and holding.peer.state is PeerState.UP:
                    remote += holding.used
                else:
                    moving += holding.used
            return {"remote": remote, "moving": moving, "mirror_only": self._nowhere}

    def down(self, lender: str) -> bool:
        """Whether a lender is silent, or not used at all."""
        with self._lock:
            peer = self._peers.get(lender)
            return peer is None or peer.state is PeerState.DOWN

    def room_pages(self) -> int:
        """Count the free slots that can be used now."""
        with self._lock:
            return sum(holding.free for holding in self._usable())

    def retire(self) -> tuple[list[LeasedRegion], list[Peer]]:
        """Remove the leases that nothing uses and nobody shall use, and the lenders that have no lease then."""
        with self._lock:
            gone = [each for each in self._holdings.values() if each.state is not HoldingState.ACTIVE and not each.used]
            for holding in gone:
                del self._holdings[holding.number]
            needed = {holding.lease.lender for holding in self._holdings.values()}
            idle = [self._peers.pop(name) for name in list(self._peers) if name not in needed]
            self.freed.notify_all()
            return gone, idle

    def holdings(self) -> list[LeasedRegion]:
        """Return all leases."""
        with self._lock:
            return list(self._holdings.values())

    def peers(self) -> list[Peer]:
        """Return all lenders."""
        with self._lock:
            return list(self._peers.values())

    def pages_on(self, holding: LeasedRegion) -> list[int]:
        """Return the pages on a lease."""
        with self._lock:
            return list(holding.pages())

    def _own(self, page: int) -> SlotRef | None:
        place = self.where[page]
        holding = self._holdings.get(lease_of(place)) if place >= 0 else None
        if holding is None or holding.state is not HoldingState.ACTIVE or holding.peer.state is PeerState.DOWN:
            return None
        return (holding, slot_of(place)) if holding.has(slot_of(place), page) else None

    def _usable(self) -> list[LeasedRegion]:
        return [
            holding
            for holding in self._holdings.values()
            if holding.free and holding.state is HoldingState.ACTIVE and holding.peer.state is PeerState.UP
        ]

    def _holding_of(self, lease: Lease) -> LeasedRegion | None:
        return next((each for each in self._holdings.values() if each.lease == lease), None)
