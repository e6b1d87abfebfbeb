"""The pages of a VM, in the memory of several lenders and in a mirror (Zombieland 4.4, 4.5).

A write is in the mirror's queue before it goes to a lender, and is done when the lender has it, or the lender failed:
then the page is in the mirror alone, and is placed elsewhere in the background. A read that a lender does not answer,
refuses, or answers with a page that is not the one written last, is answered from the mirror at once.

What holds, with a mirror:

- any lenders die, at any time, all of them: no page is lost, no read fails, none is of another content.
- the mirror's disk fails: writes are refused once its queue is full; what was written before is in this process, and in
  the lenders' memory as well.
- this process dies: see Mirror. With the table `versions` in memory that outlives it, a page whose newest content
  did not reach the file is told as PageLost; without the table it is what the last durable write made it.
- this process and lenders die together: the same, as nothing is read from lenders that this process did not write.

Without a mirror (only where the pages can be had elsewhere) a lender's death is the end of its pages: PageLost.

Locks: a page's lock (PageLocks) is held during each access of it, with all I/O for it; within it, for short, the lock
of the places, of a lender, and of the mirror. Nobody takes a page's lock while holding another of these. Accesses of
one page wait for each other, for at most the time-out of a link, and a write the mirror's `patience_seconds`.
"""

import random
import time
from array import array
from collections.abc import Callable, Mapping, Sequence

from pondstack.domain.errors import BadRequest, NotFound, Unavailable
from pondstack_rdma.errors import MirrorBusy, PageLost
from pondstack_rdma.model import ReadableBuffer, WritableBuffer
from pondstack_rdma.sealing import PAGE_BYTES, PageSealer
from pondstack_rdma.store.leased_region import Lease, SlotRef
from pondstack_rdma.store.locks import PageLocks
from pondstack_rdma.store.mirror.layout import MOST_VERSION
from pondstack_rdma.store.mirror.mirror import Mirror
from pondstack_rdma.store.page_map import PageMap
from pondstack_rdma.store.policy import LOST, NEVER, NOWHERE
from pondstack_rdma.store.report import Counts, Report, report_of
from pondstack_rdma.store.settings import Settings
from pondstack_rdma.store.transfer import Transfer

_MOST_AT_ONCE = 1024


class RemotePages:
    """`pages` pages of 4 KiB, zeros at first. A Mover has to take its turns beside it, and the mirror's worker its own.

    `sealer` None only for trusted racks. `versions` has 8 bytes per page, zeros at first.
    """

    def __init__(
        self,
        pages: int,
        mirror: Mirror | None,
        sealer: PageSealer | None,
        settings: Settings | None = None,
        versions: WritableBuffer | None = None,
        clock: Callable[[], float] = time.monotonic,
        dice: random.Random | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.counts = Counts()
        self.locks = PageLocks()
        self.mirror = mirror
        self.places = PageMap(pages, clock, dice or random.Random(), self.settings.retry)
        self.elsewhere = LOST if mirror is None else NOWHERE
        """The place of a page that a lender does not have any more."""
        self.transfer = Transfer(self.places, sealer, self.settings.corrupt_limit, self.elsewhere)
        self.clock = clock
        self.on_work: Callable[[], None] = lambda: None
        """Called when there is something for the Mover: wakes its worker."""
        self._pages = pages
        self._versions = memoryview(array("Q", [0]) * pages if versions is None else versions).cast("B").cast("Q")
        if len(self._versions) != pages:
            raise BadRequest(f"the table of versions of {pages} pages has {8 * pages} bytes")
        self._take_over()

    def add(self, lease: Lease) -> None:
        """Use a lease from soon on: the Mover connects, and opens the key. Raises InUse.

        A key that was given up is not to be added again: writes of before may still be under way to its memory.
        """
        self.places.add(lease)
        self.on_work()

    def reclaim(self, lease: Lease, seconds: float = 0.0) -> None:
        """Stop using a lease, as its lender wants it back (US_reclaim, Zombieland 4.3). Raises NotFound.

        For so many seconds its pages are copied to other leases; what is still there then is left to the mirror, and
        copied from there. Without a mirror it ends only when all are copied. `wait_free` tells when nothing uses it.
        """
        self.places.drain(lease, self.clock() + seconds)
        self.on_work()

    def wait_free(self, lease: Lease, seconds: float) -> bool:
        """Wait until nothing uses a lease, so that its lender may revoke the key; whether that is so."""
        with self.places.freed:
            return self.places.freed.wait_for(lambda: not self.places.holds(lease), seconds)

    def write(self, page: int, data: ReadableBuffer) -> None:
        """Write a page; see write_many."""
        self.write_many({page: data})

    def write_many(self, contents: Mapping[int, ReadableBuffer]) -> None:
        """Write pages, in order.

        Raises MirrorBusy when the mirror takes no more: that page and the ones behind it were not written. Without a
        mirror raises Unavailable when no lender took a page. Raises NotFound, BadRequest, with nothing written.
        """
        self._check(contents)
        for data in contents.values():
            if memoryview(data).nbytes != PAGE_BYTES:
                raise BadRequest(f"a page has {PAGE_BYTES} bytes, not {memoryview(data).nbytes}")
        with self.locks.hold(contents):
            kept: dict[int, ReadableBuffer] = {}
            try:
                for page, data in contents.items():
                    self._keep(page, data)
                    kept[page] = data
            finally:
                self._place(kept)

    def read(self, page: int) -> bytes:
        """Return a page; see read_many."""
        return self.read_many((page,))[0]

    def read_many(self, pages: Sequence[int]) -> list[bytes]:
        """Return pages.

        Raises PageLost when nobody has one; without a mirror Unavailable while its lender is silent.
        """
        self._check(pages)
        with self.locks.hold(pages):
            found = self.transfer.fetch(pages)
            return [found[page] if page in found else self._elsewhere(page) for page in pages]

    def flush(self, seconds: float) -> None:
        """Return once all that was written before is durable in the mirror; raises MirrorBusy, MirrorDegraded."""
        if self.mirror is not None:
            self.mirror.flush(seconds)

    def stranded(self) -> int:
        """Count the pages that no working lender has: 0 when all is well."""
        return self.places.stranded()

    def report(self) -> Report:
        """Return counters and latencies."""
        return report_of(self.counts, self.places, self.mirror)

    def close(self) -> None:
        """Hang up on all lenders; flush and stop the workers before."""
        for peer in self.places.peers():
            peer.close()

    def from_mirror(self, page: int) -> bytes:
        """Return a page from the mirror, under its lock. Raises PageLost, PageCorrupt."""
        if self.mirror is None:
            raise PageLost(f"page {page} was on a lender that is gone, and there is no mirror")
        return self.mirror.get(page, self._versions[page])

    def _take_over(self) -> None:
        """Begin with what an earlier process left in the mirror."""
        if self.mirror is None:
            return
        for page in range(self._pages):
            whole = self.mirror.version(page)
            newest = max(self._versions[page], whole, self.mirror.torn.get(page, 0))
            if newest > MOST_VERSION:  # the table is damaged, and nobody knows which version is the newest
                newest = max(whole, self.mirror.torn.get(page, 0)) + 1
            if newest:
                self._versions[page] = newest
                self.places.settle(page, None, NOWHERE if whole == newest else LOST)

    def _keep(self, page: int, data: ReadableBuffer) -> None:
        version = self._versions[page] + 1
        if self.mirror is not None:
            try:
                self.mirror.put(page, version, data)
            except MirrorBusy:
                self.counts.add(refused=1)
                raise
        self._versions[page] = version  # only now: a write that was refused did not take place

    def _place(self, pages: Mapping[int, ReadableBuffer]) -> None:
        """Write pages to lenders as far as that works; the rest stays in the mirror, and is the Mover's."""
        placed: dict[int, SlotRef] = {}
        failed: set[int] = set(pages)
        try:
            alone = self.mirror is None
            placed, failed = self.transfer.send(pages, seal=True, stay=True, insist=alone)
        finally:
            for page in pages:
                if page in placed or page in failed or self.mirror is not None:
                    self.places.settle(page, placed.get(page), self.elsewhere)
        self.counts.add(writes=len(pages), unplaced=len(pages) - len(placed))
        if len(placed) < len(pages):
            self.on_work()
            if self.mirror is None:
                raise Unavailable(f"{len(pages) - len(placed)} pages were taken by no lender; add leases")

    def _elsewhere(self, page: int) -> bytes:
        """Return a page that no lender gave."""
        place = self.places.where[page]
        if place == NEVER:
            return bytes(PAGE_BYTES)
        if self.mirror is None and place >= 0 and self.places.may_return(page):
            raise Unavailable(f"the lender of page {page} is silent, and there is no mirror; try again")
        data = self.from_mirror(page)
        self.counts.add(mirror_reads=1)
        self.on_work()
        return data

    def _check(self, pages: Sequence[int] | Mapping[int, ReadableBuffer]) -> None:
        if len(pages) > _MOST_AT_ONCE:
            raise BadRequest(f"at most {_MOST_AT_ONCE} pages at once, not {len(pages)}")
        for page in pages:
            if not 0 <= page < self._pages:
                raise NotFound(f"there are the pages 0 to {self._pages - 1}, not {page}")
