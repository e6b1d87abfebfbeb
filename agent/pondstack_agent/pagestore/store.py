"""The pages of one consumer, put together: borrowed memory, mirror, seal, and what outlives a crash of the process.

`versions` in its folder is a shared mapping: the kernel keeps it when the process is killed, so that the next process
knows of each page whether the mirror has its newest content, and never gives an older one. The key that seals the pages
is in this process only, and is drawn anew with each: nobody reads from a lender what another process wrote.
"""

import math
import mmap
import os
import random
import time
from pathlib import Path
from typing import Any

from pondstack_agent.pagestore.leases import Leases
from pondstack_agent.pagestore.settings import StoreSettings
from pondstack_rdma.base import Transport
from pondstack_rdma.sealing import PageSealer, new_key
from pondstack_rdma.store.latency import Percentiles
from pondstack_rdma.store.mirror.disk import FileDisk, Survives
from pondstack_rdma.store.mirror.mirror import Mirror, layout_of
from pondstack_rdma.store.mover import Mover
from pondstack_rdma.store.pages import RemotePages
from pondstack_rdma.store.report import PeerReport
from pondstack_rdma.store.settings import Settings
from pondstack_rdma.store.threads import WorkerThreads

VERSIONS = "versions"
_ROW_BYTES = 8


class PageStore:
    """Runs from now until `close`. Raises InUse, MirrorDegraded, BadRequest, OSError."""

    def __init__(self, folder: Path, settings: StoreSettings, transport: Transport) -> None:
        self.settings = settings
        self.leases = Leases(transport, settings.access_seconds)
        size = layout_of(settings.pages, settings.limits).size_bytes
        self._disk = FileDisk(settings.mirror, size, Survives(settings.survives))
        try:
            mirror = Mirror(self._disk, settings.pages, settings.limits)
            sealer = PageSealer(new_key(), settings.consumer_uuid, settings.pages) if settings.sealing else None
            speed = Settings(pages_per_second=settings.pages_per_second)
            versions = memoryview(_mapped(folder / VERSIONS, settings.pages * _ROW_BYTES))
            self.pages = RemotePages(
                settings.pages, mirror, sealer, speed, versions, clock=time.monotonic, dice=random.Random()
            )
        except BaseException:
            self._disk.close()
            raise
        self.leases.serve(self.pages)
        self._running = WorkerThreads(self.pages, Mover(self.pages, on_free=self.leases.ended))

    def view(self) -> dict[str, Any]:
        """Return what is where, and how quick each lender is; latencies are of calls, in microseconds."""
        report = self.pages.report()
        return {
            "consumer_uuid": self.settings.consumer_uuid,
            "leases": self.leases.view(),
            "pages": {"total": self.settings.pages, **report.where, "room": report.room_pages},
            "counts": report.pages,
            "mirror": {"state": report.mirror, "reason": report.mirror_reason, "queued_pages": report.mirror_queued},
            "lenders": [_of_lender(peer) for peer in report.peers],
        }

    def close(self, seconds: float) -> None:
        """Flush the mirror for at most so long, and end. Raises MirrorBusy, MirrorDegraded; it ends all the same."""
        try:
            self._running.close(seconds)
        finally:
            self._disk.close()


def _mapped(path: Path, size: int) -> mmap.mmap:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(handle, 0, size)  # a full file system is an error now, not a signal later
        return mmap.mmap(handle, size)
    finally:
        os.close(handle)


def _of_lender(peer: PeerReport) -> dict[str, Any]:
    return {
        "lender": peer.lender,
        "state": peer.state.value,
        "pages": peer.counts.pages,
        "failures": peer.counts.failures,
        "corrupt": peer.counts.corrupt,
        "reads": _figures(peer.reads),
        "writes": _figures(peer.writes),
    }


def _figures(found: Percentiles) -> dict[str, Any]:
    times = {"p50_us": found.p50, "p99_us": found.p99, "max_us": found.worst}
    return {"calls": found.count} | {
        name: None if math.isnan(seconds) else round(seconds * 1e6, 1) for name, seconds in times.items()
    }
