"""Background work of a borrower: connect again, empty leases that end, place pages anew (Zombieland 4.3).

"The remote-mem-mgrs start transferring the backup copy of the data to other remote locations." Pages are moved a few at
a time, at a bounded rate, each under its lock: a page that the VM accesses waits for one small batch at most.
"""

from collections.abc import Callable, Sequence

from pondstack_rdma.errors import AccessRefused, PageCorrupt, PageLost
from pondstack_rdma.store.leased_region import HoldingState, Lease, LeasedRegion
from pondstack_rdma.store.pages import RemotePages
from pondstack_rdma.store.peer import PeerState
from pondstack_rdma.store.policy import LOST, NOWHERE, Allowance, choose_moves, lease_of

_LOOK_PAGES = 65536
_IDLE_SECONDS = 0.05


class Mover:
    """For one worker: `turn` again and again. `on_free` is told of leases that nothing uses any more."""

    def __init__(self, pages: RemotePages, on_free: Callable[[Lease], None] = lambda _lease: None) -> None:
        self._pages = pages
        self._places = pages.places
        self._settings = pages.settings
        self._on_free = on_free
        now = pages.clock()
        rate = self._settings.pages_per_second
        self._allowance = Allowance(rate, max(rate / 10, 1.0), left=max(rate / 10, 1.0), at=now)
        self._cursor = 0
        self._opened: set[LeasedRegion] = set()
        self._probe_at = now

    def turn(self) -> float:
        """Do what is due; the seconds until the next turn."""
        now = self._pages.clock()
        self._mend()
        self._probe(now)
        self._give_up(now)
        moved = self._move(now)
        self._retire()
        if moved:
            return 0.0
        waits = [due for peer in self._places.peers() if (due := peer.due_seconds()) is not None]
        busy = self._places.stranded() > 0 or self._ending()
        return min([self._settings.probe_seconds, *waits, *([_IDLE_SECONDS] if busy else [])])

    def _mend(self) -> None:
        for peer in self._places.peers():
            if peer.mend():
                self._opened -= {holding for holding in self._opened if holding.peer is peer}
        for holding in self._places.holdings():
            if holding not in self._opened and holding.peer.state is PeerState.UP:
                self._open(holding)

    def _open(self, holding: LeasedRegion) -> None:
        """Open a key before its lender freezes; drop it when the lender does not know it any more."""
        error = holding.peer.open(holding.lease.key)
        if error is None:
            self._opened.add(holding)
            holding.peer.works()
        elif isinstance(error, AccessRefused):
            self._places.lost(holding)

    def _probe(self, now: float) -> None:
        if now >= self._probe_at:
            self._probe_at = now + self._settings.probe_seconds
            for peer in self._places.peers():
                peer.probe()

    def _ending(self) -> bool:
        return any(holding.state is not HoldingState.ACTIVE for holding in self._places.holdings())

    def _give_up(self, now: float) -> None:
        """Leave to the mirror what is on leases that are lost, or whose time is over."""
        for holding in self._places.holdings():
            lost = holding.state is HoldingState.LOST
            over = holding.state is HoldingState.DRAINING and now >= holding.ends_at
            if lost or (over and self._pages.mirror is not None):
                self._leave(holding)

    def _leave(self, holding: LeasedRegion) -> None:
        for page in self._places.pages_on(holding):
            with self._pages.locks.hold((page,)):
                place = self._places.where[page]
                if place >= 0 and lease_of(place) == holding.number:
                    self._places.settle(page, None, self._pages.elsewhere)
                    self._pages.counts.add(given_up=1)

    def _move(self, now: float) -> int:
        """Place some pages anew; how many."""
        most = min(self._allowance.take(now), self._settings.pages_at_once, self._places.room_pages())
        if most <= 0:
            return 0
        leaving = self._places.leaving(self._settings.grace_seconds)
        if not leaving and not self._places.stranded():
            return 0
        chosen, self._cursor = choose_moves(self._places.where, leaving, self._cursor, _LOOK_PAGES, most)
        if not chosen:
            return 0
        with self._pages.locks.hold(chosen):
            still, _ = choose_moves([self._places.where[page] for page in chosen], leaving, 0, most, most)
            moved = self._move_locked([chosen[index] for index in still])
        self._allowance.spend(moved)
        self._pages.counts.add(moved=moved)
        return moved

    def _move_locked(self, pages: Sequence[int]) -> int:
        # What a lender still gives is copied as it is, sealed: its seal stays good, also if the copy fails.
        transfer = self._pages.transfer
        raw = transfer.fetch_sealed(pages)
        placed, _ = transfer.send(raw, seal=False, stay=False, insist=False)
        stored = {page: data for page in pages if page not in raw and (data := self._from_mirror(page)) is not None}
        again, _ = transfer.send(stored, seal=True, stay=False, insist=False)
        for page in stored.keys() - again.keys():
            self._places.settle(page, None)  # its seal is used up: what its former lender has is of no use
        for page, spot in (placed | again).items():
            self._places.settle(page, spot)
        return len(placed) + len(again)

    def _from_mirror(self, page: int) -> bytes | None:
        if self._pages.mirror is None:
            return None  # its lender may come back
        try:
            return self._pages.from_mirror(page)
        except (PageLost, PageCorrupt):
            # Its lender may come back with it; else the next read tells.
            if self._places.where[page] == NOWHERE:
                self._places.settle(page, None, LOST)
                self._pages.counts.add(lost=1)
            return None

    def _retire(self) -> None:
        gone, idle = self._places.retire()
        for holding in gone:
            holding.peer.forget(holding.lease.key)
            self._opened.discard(holding)
            self._on_free(holding.lease)
        for peer in idle:
            peer.close()
