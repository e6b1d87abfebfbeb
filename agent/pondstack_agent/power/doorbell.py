"""The doorbell of a host that sleeps: a page of its waker, into which another host writes the sleep's token by RDMA.

Zombieland (EuroSys'18), section 4.2: nothing of a sleeper is asked for that its network card does not do by itself. The
page is lent by the transport of [lending], to hosts that are connected before this one sleeps; the waker looks at it.
"""

import hmac
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any

from oslo_log import log

from pondstack.domain.errors import HostUnusable, PondError, Unavailable
from pondstack_rdma.base import Lender, Transport
from pondstack_rdma.lending import PAGE_BYTES
from pondstack_rdma.model import Region

LOG = log.getLogger(__name__)

TOKEN_BYTES = 32
SILENT = bytes(TOKEN_BYTES)
"""What is in the page before anybody rings."""
STOP_LOOKS = 4
"""So many looks at the page at most before the thread sees that it is to end."""

Ring = dict[str, Any]
"""What a host rings with: `ticket` and `key`, as the transport has them, and the `token`, in hexadecimal digits."""


class Doorbell:
    """The one of a host, for one sleep at a time. Thread-safe.

    `transport` None: there is none to lend by; `rung` hears of the operation of a sleep whose token was written;
    `pause_seconds`: between two looks.
    """

    def __init__(
        self, transport: Transport | None, name: str, rung: Callable[[str], object], pause_seconds: float
    ) -> None:
        self._transport, self._name, self._rung, self._pause = transport, name, rung, pause_seconds
        self._lock = threading.Lock()
        self._armed: _Armed | None = None

    def arm(self, operation_id: str, ringers: Sequence[str]) -> dict[str, Any]:
        """Have hosts ring for one sleep, and nobody for a former one: {"rings": {host: Ring}}, the same each time.

        Raises HostUnusable (no transport), Unavailable (its device fails).
        """
        with self._lock:
            if self._armed is not None and self._armed.operation_id != operation_id:
                self._armed.end()
                self._armed = None
            if self._armed is None:
                self._armed = self._arm(operation_id)
            try:
                return {"rings": {ringer: self._armed.ring(ringer) for ringer in ringers}}
            except PondError as error:
                raise Unavailable(f"this host has no doorbell: {error.message}") from error

    def disarm(self, operation_id: str) -> None:
        """End what was armed for a sleep; its token is worth nothing any more. Idempotent."""
        with self._lock:
            if self._armed is not None and self._armed.operation_id == operation_id:
                self._armed.end()
                self._armed = None

    def close(self) -> None:
        """End whatever is armed."""
        if self._armed is not None:
            self.disarm(self._armed.operation_id)

    def _arm(self, operation_id: str) -> "_Armed":
        if self._transport is None:
            raise HostUnusable("this host has no doorbell: [power] doorbell is off, or [lending] transport is empty")
        try:
            lender = self._transport.lend(self._name)
        except PondError as error:
            raise Unavailable(f"this host has no doorbell: {error.message}") from error
        try:
            return _Armed(operation_id, lender, lender.register(PAGE_BYTES), self._rung, self._pause)
        except PondError as error:
            lender.close()
            raise Unavailable(f"this host has no doorbell: {error.message}") from error


class _Armed:
    """A page, its token, and the thread that looks at it."""

    def __init__(
        self, operation_id: str, lender: Lender, region: Region, rung: Callable[[str], object], pause: float
    ) -> None:
        self.operation_id = operation_id
        self._lender, self._region, self._rung, self._pause = lender, region, rung, pause
        self._token = secrets.token_bytes(TOKEN_BYTES)
        self._rings: dict[str, Ring] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="doorbell", daemon=True)

    def ring(self, ringer: str) -> Ring:
        """Return what one host rings with."""
        if ringer not in self._rings:
            key = self._lender.export(self._region, ringer)
            self._rings[ringer] = {
                "ticket": self._lender.admit(ringer).to_dict(),
                "key": self._lender.locate(key).to_dict(),
                "token": self._token.hex(),
            }
            if not self._thread.is_alive():
                # A region has no content before its first key.
                self._thread.start()
        return self._rings[ringer]

    def end(self) -> None:
        """End all keys, and the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._lender.close()

    def _watch(self) -> None:
        known = SILENT
        try:
            while not self._stop.is_set():
                if self._lender.watch(self._region, 0, known, self._pause, STOP_LOOKS):
                    known = self._look()
        except PondError as error:
            LOG.error("The doorbell of this host is out of order: %s", error)

    def _look(self) -> bytes:
        """Return what is in the page, which is silent again once it was rung."""
        found = self._lender.load(self._region, 0, TOKEN_BYTES)
        if not hmac.compare_digest(found, self._token):
            # Or half of a token: then the next look finds the whole of it.
            LOG.warning("The doorbell of this host was rung without the token of its sleep: it sleeps on")
            return found
        LOG.info("The doorbell of this host was rung")
        self._lender.store(self._region, 0, SILENT)
        self._rung(self.operation_id)
        return SILENT
