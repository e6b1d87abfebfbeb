"""A borrower's pages in the memory of a lender over verbs, and in a mirror on the disk of its own host."""

import random
import time
from functools import partial
from pathlib import Path

from pondstack_rack.wait import wait_until
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.sealing import PAGE_BYTES, PageSealer, new_key
from pondstack_rdma.store.leased_region import Lease
from pondstack_rdma.store.mirror.disk import FileDisk
from pondstack_rdma.store.mirror.mirror import Mirror, MirrorLimits, layout_of
from pondstack_rdma.store.mover import Mover
from pondstack_rdma.store.pages import RemotePages
from pondstack_rdma.store.threads import WorkerThreads
from pondstack_rdma.verbs import VerbsTransport

LIMITS = MirrorLimits(patience_seconds=60.0)
DEADLINE_SECONDS = 120.0


class Paging:
    """As many pages as a key has room for."""

    def __init__(self, ticket: Ticket, key: Key, seconds: float) -> None:
        self._count = key.size_bytes // PAGE_BYTES
        disk = FileDisk(Path("/root/mirror"), layout_of(self._count, LIMITS).size_bytes)
        sealer = PageSealer(new_key(), "a VM", self._count)
        self._pages = RemotePages(self._count, Mirror(disk, self._count, LIMITS), sealer)
        self._running = WorkerThreads(self._pages, Mover(self._pages))
        self._pages.add(Lease("lender", key, partial(VerbsTransport().connect, ticket, seconds)))
        if not wait_until(lambda: self._pages.places.room_pages() == self._count, DEADLINE_SECONDS):
            raise RuntimeError(f"the lender is not in use: {self._pages.report()}")

    def write(self, seed: int) -> float:
        """Write all pages in a seeded order: the seconds of the slowest write."""
        slowest = 0.0
        for page in self._order(seed):
            data, begun = content(page, seed), time.monotonic()
            self._pages.write(page, data)
            slowest = max(slowest, time.monotonic() - begun)
        return slowest

    def read(self, seed: int) -> tuple[int, float]:
        """Read all pages: how many are not what `write` with that seed left, and the seconds of the slowest read."""
        wrong, slowest = 0, 0.0
        for page in self._order(seed + 1):
            begun = time.monotonic()
            found = self._pages.read(page)
            slowest = max(slowest, time.monotonic() - begun)
            wrong += found != content(page, seed)
        return wrong, slowest

    def from_mirror(self) -> int:
        """Return how many reads the mirror has answered."""
        return self._pages.report().pages["mirror_reads"]

    def close(self) -> None:
        """End it."""
        self._running.close(DEADLINE_SECONDS)

    def _order(self, seed: int) -> list[int]:
        return random.Random(seed).sample(range(self._count), self._count)


def content(page: int, seed: int) -> bytes:
    """Return the content of a page: no two are alike."""
    return random.Random(page * 2**16 + seed).randbytes(PAGE_BYTES)
