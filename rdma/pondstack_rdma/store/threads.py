"""The threads of a borrower: one that writes the mirror, one that moves pages."""

from collections.abc import Callable

from pondstack_rdma.store.mover import Mover
from pondstack_rdma.store.pages import RemotePages
from pondstack_rdma.store.worker import Thread, Worker, start_thread


class WorkerThreads:
    """Runs what RemotePages needs beside it, from now until `close`. The mirror's disk is the caller's to close."""

    def __init__(
        self, pages: RemotePages, mover: Mover, start: Callable[[str, Callable[[], None]], Thread] = start_thread
    ) -> None:
        self._pages = pages
        self._mover = Worker("move pages", mover.turn, start)
        pages.on_work = self._mover.wake
        self._writer: Worker | None = None
        if pages.mirror is not None:
            self._writer = Worker("write mirror", pages.mirror.turn, start)
            pages.mirror.on_work = self._writer.wake

    def close(self, seconds: float = 10.0) -> None:
        """Flush the mirror for at most so long, end the threads, hang up. Raises MirrorBusy, MirrorDegraded."""
        try:
            if self._pages.mirror is not None:
                self._pages.mirror.close(seconds)
        finally:
            if self._writer is not None:
                self._writer.stop()
            self._mover.stop()
            self._pages.close()
