"""Memory that guests have committed, as their balloon drivers tell libvirt.

"Committed" is what the guest's kernel has (`available`) less what is free (`unused`): more
than the guest uses, caches included, which is the safe side (Pond 4.2).
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from oslo_log import log

from pondstack.domain.telemetry import Metric
from pondstack_agent.host.libvirt_bindings import bindings
from pondstack_agent.telemetry.memory import Guests, running_guests
from pondstack_agent.telemetry.outbox import Outbox

LOG = log.getLogger(__name__)

KIB_PER_MIB = 1024
DEADLINE_SECONDS = 30.0
"""How long libvirt is waited for. A call that hangs is left where it is, and nothing is asked until it has ended."""

NO_BINDINGS = "Python's libvirt bindings are not installed on this host"
UNKNOWN = "libvirt knows no such guest"
NO_DRIVER = "the guest's balloon driver tells nothing: it has none, or libvirt was given no <stats period>"
HANGS = "libvirt does not answer"

Answer = float | str
"""MiB, or why there are none."""


def committed(stats: dict[str, int], now: float, stale_seconds: float) -> Answer:
    """Return what a domain's memory statistics say (in KiB; virDomainMemoryStats of libvirt)."""
    if "available" not in stats or "unused" not in stats:
        return NO_DRIVER
    age = now - stats.get("last_update", now)
    if age > stale_seconds:
        return f"the guest's balloon driver was last heard {age:.0f} s ago"
    return (stats["available"] - stats["unused"]) / KIB_PER_MIB


class Balloon:
    """Asks libvirt. `stale_seconds`: older than this, a driver's word is none."""

    def __init__(self, uri: str, stale_seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._uri = uri
        self._stale = stale_seconds
        self._clock = clock
        self._connection: Any = None
        self._pending: Future[dict[str, Answer]] | None = None

    def ask(self, wanted: Iterable[str], deadline_seconds: float = DEADLINE_SECONDS) -> dict[str, Answer]:
        """Return an answer for each of the guests."""
        names = list(wanted)
        if self._pending is not None and not self._pending.done():
            return dict.fromkeys(names, HANGS)
        pending: Future[dict[str, Answer]] = Future()
        self._pending = pending
        # A daemon: an executor's thread would be waited for when the agent ends.
        threading.Thread(target=self._answer, args=(pending, names), name="libvirt", daemon=True).start()
        try:
            return pending.result(timeout=deadline_seconds)
        except TimeoutError:
            return dict.fromkeys(names, HANGS)

    def _answer(self, pending: Future[dict[str, Answer]], names: list[str]) -> None:
        try:
            pending.set_result(self._ask(names))
        except BaseException as error:
            pending.set_exception(error)
            raise

    def _ask(self, names: list[str]) -> dict[str, Answer]:
        libvirt = bindings()
        if libvirt is None:
            return dict.fromkeys(names, NO_BINDINGS)
        try:
            if self._connection is None or not self._connection.isAlive():
                self._connection = libvirt.openReadOnly(self._uri)
        except libvirt.libvirtError as error:
            return dict.fromkeys(names, f"libvirt cannot be reached at {self._uri}: {error}")
        return {name: self._one(libvirt, name) for name in names}

    def _one(self, libvirt: Any, name: str) -> Answer:
        try:
            stats = self._connection.lookupByUUIDString(name).memoryStats()
        except libvirt.libvirtError as error:
            unknown = error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN
            return UNKNOWN if unknown else f"libvirt does not say: {error}"
        return committed(stats, self._clock(), self._stale)


class BalloonLook:
    """Committed memory of all guests of this host as samples."""

    def __init__(self, outbox: Outbox, balloon: Balloon, running: Guests = running_guests) -> None:
        self._outbox = outbox
        self._balloon = balloon
        self._running = running

    def run(self) -> None:
        """Ask once."""
        names = list(self._running())
        for name, answer in (self._balloon.ask(names) if names else {}).items():
            if isinstance(answer, str):
                self._outbox.missing(name, Metric.COMMITTED_MIB, answer)
            else:
                self._outbox.add(name, Metric.COMMITTED_MIB, answer)
