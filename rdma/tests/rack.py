"""Lenders and a borrower in this process, without threads: a test takes the turns, and time goes as it says."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from pondstack_rdma.base import Lender, Transport
from pondstack_rdma.model import Region
from pondstack_rdma.sealing import PageSealer, new_key
from pondstack_rdma.store.leased_region import Lease
from pondstack_rdma.store.mirror.mirror import Mirror, MirrorLimits, layout_of
from pondstack_rdma.store.mover import Mover
from pondstack_rdma.store.pages import RemotePages
from pondstack_rdma.store.peer import Retry
from pondstack_rdma.store.settings import Settings

from .disks import MemoryDisk
from .harness import PAGE, TIMEOUT_SECONDS, pattern

PAGES = 24
LIMITS = MirrorLimits(queue_pages=16, batch_pages=4, patience_seconds=0.0, retry_seconds=0.0)
SETTINGS = Settings(Retry(0.1, 1.0), grace_seconds=0.5, probe_seconds=1.0, pages_at_once=8)


@dataclass
class Clock:
    """Time as the test says."""

    now: float = 100.0

    def __call__(self) -> float:
        """Tell it."""
        return self.now


@dataclass
class Rack:
    """Lenders, and one VM's pages."""

    transport: Transport
    borrower: RemotePages
    mover: Mover
    clock: Clock
    disk: MemoryDisk
    lenders: dict[str, Lender] = field(default_factory=dict)
    leases: dict[Lease, Region] = field(default_factory=dict)
    freed: list[Lease] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    more: Callable[[int], list[Lease]] = lambda _pages: []
    """Asked for leases for so many pages, once a second at most, while there is no room: what an agent does."""
    ask_at: float = 0.0

    def lend(self, name: str, pages: int = PAGES) -> Lease:
        """Have a lender export a region; it is not in use yet."""
        lender = self.lenders.get(name)
        if lender is None:
            lender = self.lenders[name] = self.transport.lend(name)
        region = lender.register(pages * PAGE)
        ticket = lender.admit("host1")
        lease = Lease(name, lender.export(region, "host1"), partial(self.transport.connect, ticket, TIMEOUT_SECONDS))
        self.leases[lease] = region
        return lease

    def add(self, name: str, pages: int = PAGES) -> Lease:
        """Lend, and use it."""
        lease = self.lend(name, pages)
        self.borrower.add(lease)
        self.turns()
        return lease

    def kill(self, name: str) -> None:
        """End a lender; its leases are dead."""
        self.lenders.pop(name).close()
        self.leases = {lease: region for lease, region in self.leases.items() if lease.lender != name}

    def revoke(self, lease: Lease) -> None:
        """Have the lender take it back, whatever the borrower thinks."""
        self.lenders[lease.lender].revoke(lease.key)
        self.leases.pop(lease)

    def turns(self, count: int = 3, seconds: float = 0.0) -> None:
        """Let the background work for some turns, and the clock go on."""
        for _ in range(count):
            self.clock.now += seconds
            if self.borrower.mirror:
                self.borrower.mirror.turn()
            self._ask()
            self.mover.turn()

    def _ask(self) -> None:
        short = self.borrower.places.stranded() - self.borrower.places.room_pages()
        if short > 0 and self.clock.now >= self.ask_at:
            self.ask_at = self.clock.now + 1.0
            self.asked.append(short)
            for lease in self.more(short):
                self.borrower.add(lease)

    def settle(self) -> None:
        """Let the background work until all is well; fails if that takes too many turns."""
        for _ in range(400):
            if not self.borrower.stranded():
                return
            self.turns(1, 0.3)
        raise AssertionError(self.borrower.report())

    def used(self) -> dict[str, int]:
        """Pages by lender."""
        used: dict[str, int] = {}
        for holding in self.borrower.places.holdings():
            used[holding.lease.lender] = used.get(holding.lease.lender, 0) + holding.used
        return used

    def close(self) -> None:
        """End all."""
        self.borrower.close()
        for lender in self.lenders.values():
            lender.close()


def rack(
    transport: Transport,
    *,
    mirror: bool = True,
    sealed: bool = True,
    settings: Settings = SETTINGS,
    limits: MirrorLimits = LIMITS,
    disk: MemoryDisk | None = None,
    versions: bytearray | None = None,
) -> Rack:
    """Make one without lenders."""
    clock = Clock()
    disk = disk or MemoryDisk(layout_of(PAGES, limits).size_bytes)
    kept = Mirror(disk, PAGES, limits, clock) if mirror else None
    sealer = PageSealer(new_key(), "7ac7e33b-55c9-4f7f-8b23-c4a1f2c52f3b", PAGES) if sealed else None
    pages = RemotePages(PAGES, kept, sealer, settings, versions, clock, random.Random(1))
    freed: list[Lease] = []
    return Rack(transport, pages, Mover(pages, freed.append), clock, disk, freed=freed)


def fill(made: Rack, generation: int = 1) -> dict[int, bytes]:
    """Write all pages."""
    content = {page: pattern(1000 * page + generation, PAGE) for page in range(PAGES)}
    for page, data in content.items():
        made.borrower.write(page, data)
        made.turns(1)
    return content


def check(made: Rack, content: dict[int, bytes]) -> None:
    """Read all pages, one by one and together."""
    assert {page: made.borrower.read(page) for page in content} == content
    assert made.borrower.read_many(list(content)) == list(content.values())
