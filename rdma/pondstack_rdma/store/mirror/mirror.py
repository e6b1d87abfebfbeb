"""The mirror: every page that is in remote memory is on local storage of the borrower as well (Zombieland 4.5).

Writes are asynchronous: `put` queues a page in this process, `turn` (a worker's thread) writes batches of them. `get`
finds a page wherever it is: queued, being written, or in the file. So at any time after `put`:

- a lender dies: every page is here; nothing is lost.
- this process dies, too: what was *durable* is in the file, and is found by the next process; `flush` returns once all
  that was put before is durable. Of a page that was put again after that, the newest content is gone with the lender
  and the queue: the file then has an older version, and `version` tells which. A caller that must know compares it with
  a table of versions that outlived the process, as RemotePages does; nobody gets it by mistake, as `get` asks for a
  version and gives no other.
- the host dies as well: the same where the disk `survives` that; else nothing is promised.
- the disk fails or is full: the state is DEGRADED, pages stay queued in memory and are tried again, and once the queue
  is full `put` waits and then raises: the write did not take place, and the page's former content stays.

The content is not encrypted: it is where the VM's memory is swapped to, on the VM's own host; use an encrypted volume
where that matters.

One lock guards all of the state; it is never held during I/O. Only one thread at a time may be in `turn`.
"""

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from threading import Condition

from pondstack.domain.errors import BadRequest, NotFound
from pondstack_rdma.errors import MirrorBusy, MirrorDegraded, PageCorrupt, PageLost
from pondstack_rdma.model import ReadableBuffer
from pondstack_rdma.sealing import PAGE_BYTES
from pondstack_rdma.store.mirror.disk import Disk
from pondstack_rdma.store.mirror.layout import HEADER_BYTES, Header, Layout, check_first, header_of, pack_first
from pondstack_rdma.store.mirror.recovery import recover

_NONE = -1


class MirrorState(StrEnum):
    """Whether the disk takes pages."""

    GOOD = "good"
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class MirrorLimits:
    """`queue_pages` of 4 KiB are kept in memory at most; a full queue makes `put` wait for `patience_seconds`."""

    queue_pages: int = 4096
    batch_pages: int = 64
    patience_seconds: float = 5.0
    retry_seconds: float = 1.0
    """After a failure of the disk."""


@dataclass(frozen=True, slots=True)
class _Queued:
    version: int
    data: bytes


class Mirror:
    """Of `pages` pages on a disk of `layout(...).size_bytes`. Raises MirrorDegraded, BadRequest for a foreign file."""

    def __init__(
        self,
        disk: Disk,
        pages: int,
        limits: MirrorLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits or MirrorLimits()
        self._layout = layout_of(pages, self._limits)
        self._disk = disk
        self._clock = clock
        self._changed = Condition()
        self._waiting: dict[int, _Queued] = {}
        self._writing: dict[int, _Queued] = {}
        self._slots = array("q", [_NONE]) * pages
        self._versions = array("Q", [0]) * pages
        self._held: dict[int, int] = {}
        self._failure = ""
        self._closed = False
        self.torn: dict[int, int] = {}
        """Pages whose newest write was found damaged at the start, and that version; until they are put again."""
        self.on_work: Callable[[], None] = lambda: None
        """Called when a page was queued: wakes the worker."""
        try:
            self._free = self._load()
        except OSError as error:
            raise MirrorDegraded(f"the mirror cannot be read: {error}; see to its disk") from error

    @property
    def state(self) -> MirrorState:
        """Whether the last write to the disk succeeded."""
        return MirrorState.DEGRADED if self._failure else MirrorState.GOOD

    @property
    def reason(self) -> str:
        """Why it is degraded; empty when it is not."""
        return self._failure

    @property
    def queued(self) -> int:
        """Pages that are not durable yet."""
        with self._changed:
            return self._count()

    def version(self, page: int) -> int:
        """Return the newest version of a page that `get` gives; 0 when there is none."""
        self._check(page)
        with self._changed:
            queued = self._waiting.get(page) or self._writing.get(page)
            return queued.version if queued else self._versions[page]

    def put(self, page: int, version: int, data: ReadableBuffer) -> None:
        """Queue a page, whose content is copied. `version` rises from write to write of a page.

        Raises MirrorBusy, or MirrorDegraded as one kind of it, when there is no room in time: then nothing was changed.
        """
        self._check(page)
        queued = _Queued(version, bytes(data))
        if len(queued.data) != PAGE_BYTES or version <= 0:
            raise BadRequest(f"a page of the mirror has {PAGE_BYTES} bytes and a version above 0")
        with self._changed:
            self._wait(lambda: page in self._waiting or self._count() < self._limits.queue_pages)
            # An older content that still waits is never read again, hence need not be written.
            self._waiting[page] = queued
        self.on_work()

    def get(self, page: int, version: int) -> bytes:
        """Return that version of a page. Raises PageLost when there is none, PageCorrupt when the disk damaged it."""
        self._check(page)
        while True:
            with self._changed:
                for queued in (self._waiting.get(page), self._writing.get(page)):
                    if queued and queued.version == version:
                        return queued.data
                slot = self._slots[page] if self._versions[page] == version else _NONE
            if slot == _NONE:
                raise PageLost(f"the mirror has no version {version} of page {page}, only {self.version(page)}")
            data = self._read(page, version, slot)
            if data is not None:
                return data
            with self._changed:  # it may have moved while it was read
                if self._slots[page] == slot and self._versions[page] == version:
                    raise PageCorrupt(f"the mirror's disk damaged page {page}; replace the disk")

    def flush(self, seconds: float) -> None:
        """Return once all that was put before is durable; raises MirrorBusy, MirrorDegraded when it takes longer."""
        with self._changed:
            wanted = {
                page: queued.version for group in (self._writing, self._waiting) for page, queued in group.items()
            }
            self._wait(lambda: all(self._versions[page] >= version for page, version in wanted.items()), seconds)

    def turn(self) -> float | None:
        """Write one batch: for a worker. The seconds until the next turn, None when there is nothing to do."""
        with self._changed:
            if self._closed:
                return None
            while self._waiting and len(self._writing) < min(self._limits.batch_pages, len(self._free)):
                page = next(iter(self._waiting))
                self._writing[page] = self._waiting.pop(page)  # or instead of an older one, of a batch that failed
            batch = dict(self._writing)
        if not batch:
            return None
        try:
            self._store(batch)
        except OSError as error:
            with self._changed:
                self._failure = f"the mirror's disk fails ({error}); make room on it or replace it"
                self._changed.notify_all()
            return self._limits.retry_seconds
        with self._changed:
            self._failure = ""
            self._changed.notify_all()
        return 0.0

    def close(self, seconds: float = 10.0) -> None:
        """Flush, then take and write nothing more, in any case; idempotent. Raises as `flush`.

        Stop the worker and close the disk, which are the opener's, after it.
        """
        try:
            if not self._closed:
                self.flush(seconds)
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()

    def _store(self, batch: dict[int, _Queued]) -> None:
        """Write a batch to free slots, make it durable, then free the former ones. Raises OSError: all is as before.

        After a failed sync the kernel may have dropped what it was given, so that the whole batch is written again.
        """
        taken = self._free[-len(batch) :]
        for (page, queued), slot in zip(batch.items(), taken, strict=True):
            self._disk.write(self._layout.data_at(slot), queued.data)
            self._disk.write(self._layout.header_at(slot), header_of(page, queued.version, queued.data).pack())
        self._disk.sync()
        del self._free[-len(batch) :]
        former = []
        with self._changed:
            for (page, queued), slot in zip(batch.items(), taken, strict=True):
                former += [each for each in (self._slots[page], self._held.pop(page, _NONE)) if each != _NONE]
                self._slots[page], self._versions[page] = slot, queued.version
                self.torn.pop(page, None)
                del self._writing[page]
        self._wipe(former)

    def _wipe(self, slots: list[int]) -> None:
        """Free slots, and see that no header of an old content is left, which could be taken for the newest one."""
        try:
            for slot in slots:
                self._disk.write(self._layout.header_at(slot), bytes(HEADER_BYTES))
        finally:
            self._free += slots

    def _read(self, page: int, version: int, slot: int) -> bytes | None:
        try:
            data = self._disk.read(self._layout.data_at(slot), PAGE_BYTES)
            rows = self._disk.read(self._layout.header_at(slot), HEADER_BYTES)
        except OSError as error:
            raise PageCorrupt(f"the mirror's disk does not give page {page}: {error}; replace the disk") from error
        return data if header_of(page, version, data).pack() == rows else None

    def _wait(self, condition: Callable[[], bool], seconds: float | None = None) -> None:
        """Wait under the lock until a condition holds; raises MirrorBusy, MirrorDegraded."""
        ends = self._clock() + (self._limits.patience_seconds if seconds is None else seconds)
        while self._closed or not condition():
            if self._closed:
                raise MirrorDegraded("the mirror is closed")
            left = ends - self._clock()
            if left <= 0:
                if self._failure:
                    raise MirrorDegraded(f"{self._failure}; {self._count()} pages wait in memory")
                raise MirrorBusy(f"the mirror's disk is slow: {self._count()} pages wait; try again, or write less")
            self._changed.wait(left)

    def _load(self) -> list[int]:
        """Take over what is in the file; returns the free slots, the first ones last."""
        if not check_first(self._disk.read(0, PAGE_BYTES), self._layout):
            self._disk.write(0, pack_first(self._layout))
            self._disk.sync()
        found = recover(self._disk, self._layout)
        for page, (slot, header) in found.whole.items():
            self._take_over(page, slot, header)
        for page, (slot, header) in found.torn.items():
            self._held[page], self.torn[page] = slot, header.version
        for slot in found.stale:
            self._disk.write(self._layout.header_at(slot), bytes(HEADER_BYTES))
        used = {slot for slot in self._slots if slot != _NONE} | set(self._held.values())
        return [slot for slot in range(self._layout.slots - 1, -1, -1) if slot not in used]

    def _take_over(self, page: int, slot: int, header: Header) -> None:
        self._slots[page], self._versions[page] = slot, header.version

    def _count(self) -> int:
        return len(self._waiting) + len(self._writing)

    def _check(self, page: int) -> None:
        if not 0 <= page < self._layout.pages:
            raise NotFound(f"the mirror has the pages 0 to {self._layout.pages - 1}, not {page}")


def layout_of(pages: int, limits: MirrorLimits) -> Layout:
    """Return how a mirror of so many pages lies on its disk."""
    return Layout(pages, limits.batch_pages)
