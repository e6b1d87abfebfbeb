"""A process of this host whose memory the data plane pages, to a lender of another host over verbs."""

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pondstack_rack.wait import Deadline
from pondstack_rdma.model import Key, Ticket
from rdma.tests.data_plane.processes import GUEST, REST_US, DataPlane, RefusedError, StandinGuest

LENDER = "lender1"
CONNECT_SECONDS = 120.0


def insist(plane: DataPlane, **request: Any) -> float:
    """Ask again while a lender does not answer; the seconds."""
    begun, pause = time.monotonic(), Deadline(CONNECT_SECONDS)
    while True:
        try:
            plane.ask(**request)
            return time.monotonic() - begun
        except RefusedError as error:
            if "does not answer" not in str(error) or pause.over:
                raise
        pause.pause()


class Paged:
    """A stand-in guest and its data plane; `seed` says what it writes and where."""

    def __init__(self, data_plane: str, standin_guest: str, mib: int, seed: int) -> None:
        self._folder = Path(tempfile.mkdtemp(dir="/root"))
        # Processes of tests end with the thread that started them, and each call from outside has a thread of its own.
        self._starter = ThreadPoolExecutor(1)
        self._plane = DataPlane(Path(data_plane), self._folder / "plane")
        self._start()
        guest = self._starter.submit(StandinGuest, Path(standin_guest), mib, threads=1, seed=seed, rest_us=REST_US)
        self._guest = guest.result()
        self._plane.attach(self._guest, self._folder / "mirror", mib)

    def lease(self, ticket: Ticket, keys: Sequence[Key], deadline_ms: int) -> float:
        """Have the data plane connect to a lender and use its keys, however long their hosts take; the seconds."""
        shown = {"ticket": ticket.to_dict(), "keys": [key.to_dict() for key in keys]}
        return insist(self._plane, verb="lease", guest=GUEST, lender=LENDER, deadline_ms=deadline_ms, **shown)

    def connect(self, ticket: Ticket, deadline_ms: int) -> float:
        """Have the data plane keep a link to a lender; the seconds."""
        shown = {"ticket": ticket.to_dict(), "deadline_ms": deadline_ms}
        return insist(self._plane, verb="connect", lender=LENDER, **shown)

    def disclose(self, keys: Sequence[Key]) -> None:
        """Have the data plane use keys over that link; nothing is asked of the lender."""
        self._plane.ask(verb="lease", guest=GUEST, lender=LENDER, keys=[key.to_dict() for key in keys])

    def limit(self, mib: int) -> None:
        """Give the guest so much local memory."""
        self._plane.ask(verb="limit", guest=GUEST, limit_mib=mib)

    def view(self) -> dict[str, Any]:
        """Return what the data plane tells of the guest."""
        return self._plane.view()

    def kill_data_plane(self) -> None:
        """Kill -9, and start the next one."""
        self._plane.kill()
        self._start()

    def finish(self) -> dict[str, int]:
        """Bring all pages home, and have the guest verify all of its memory; what it counted."""
        self._plane.detach()
        counted = self._guest.finish()
        self._plane.stop()
        return counted

    def log(self) -> str:
        """Return what the data plane has printed."""
        return self._plane.log()

    def _start(self) -> None:
        self._starter.submit(self._plane.start).result()
        self._plane.await_ready()
