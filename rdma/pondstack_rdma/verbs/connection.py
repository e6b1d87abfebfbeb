"""The borrower's side of a connection by librdmacm: it resolves the lender's address and requests the connection."""

import errno
import select
import time

from pondstack.domain.errors import PondError
from pondstack_rdma.errors import NoDevice, TransportGone, TransportTimeout
from pondstack_rdma.verbs import handshake
from pondstack_rdma.verbs.cm import NOBODY_LISTENS, REFUSED_BY_LENDER, Event, open_channel
from pondstack_rdma.verbs.cm_attrs import CmAttrs


class Connection:
    """Resolves address and route in its constructor. The time-out starts there, and bounds all steps together.

    Raises NoDevice, TransportGone, TransportTimeout.
    """

    def __init__(self, address: str, timeout_seconds: float) -> None:
        self._address, self._seconds = address, timeout_seconds
        self._ends = time.monotonic() + timeout_seconds
        self._channel = open_channel()
        self._poll = select.poll()
        self._poll.register(self._channel.fileno(), select.POLLIN)
        try:
            self._resolve()
        except BaseException:
            self.close()
            raise

    @property
    def device(self) -> str:
        """The name of the device that leads to the lender."""
        return self._cm_id.device

    def request(self, qpn: int, data: bytes) -> bytes:
        """Request a connection for a queue pair, and return the private data of the response. Raises a refusal, too."""
        try:
            self._cm_id.connect(qpn, data)
        except OSError as error:
            raise self._no_lender(error) from error
        return self._wait(Event.RESPONSE)

    def attrs(self) -> CmAttrs:
        """Return the attributes that librdmacm chose, after `request`."""
        try:
            return CmAttrs(*self._cm_id.attrs())
        except OSError as error:
            raise self._no_lender(error) from error

    def establish(self) -> None:
        """Acknowledge the response: the queue pair is connected."""
        try:
            self._cm_id.establish()
        except OSError as error:
            raise self._no_lender(error) from error

    def fileno(self) -> int:
        """Return the descriptor. After `establish` it is readable when the lender has ended, or the device has gone."""
        return self._channel.fileno()

    def close(self) -> None:
        """Disconnect; idempotent."""
        cm_id = getattr(self, "_cm_id", None)
        if cm_id is not None:
            cm_id.close()  # tells the lender, if it has accepted
        self._channel.close()

    def _resolve(self) -> None:
        host, _, port = self._address.rpartition(":")
        try:
            self._cm_id = self._channel.resolve(host, int(port), self._left_ms())
            self._wait(Event.ADDRESS_RESOLVED)
            self._cm_id.resolve_route(self._left_ms())
        except (OSError, ValueError, OverflowError) as error:
            known = isinstance(error, OSError) and error.errno == errno.ENODEV
            raise (self._no_device() if known else self._no_lender(error)) from error
        self._wait(Event.ROUTE_RESOLVED)

    def _left_ms(self) -> int:
        return max(int((self._ends - time.monotonic()) * 1000), 1)

    def _wait(self, wanted: Event) -> bytes:
        """Wait for an event, and return its private data."""
        while (event := self._channel.event()) is None:
            if not self._poll.poll(self._left_ms()) and time.monotonic() >= self._ends:
                raise self._timed_out()
        kind, _, status, data = event
        if kind != wanted:
            raise self._failure(kind, status, data)
        return data

    def _failure(self, kind: int, status: int, data: bytes) -> PondError:
        """Return the error for an event that came instead of the expected one."""
        if kind == Event.REJECTED and status == REFUSED_BY_LENDER:
            return handshake.refused(data)
        if kind == Event.REJECTED and status == NOBODY_LISTENS:
            return self._no_lender("nobody listens")
        if status == -errno.ETIMEDOUT:
            return self._timed_out()
        if kind == Event.ADDRESS_ERROR and status == -errno.ENODEV:
            return self._no_device()
        return TransportGone(
            f"no connection to {self._address}: event {kind}, status {status}; see `rdma link` at both sides"
        )

    def _no_device(self) -> NoDevice:
        host = self._address.rpartition(":")[0]
        return NoDevice(
            f"no RDMA device of this host leads to {host}; see `rdma link`, `ip route get {host}` and "
            "/sys/class/infiniband/*/ports/*/gids"
        )

    def _no_lender(self, why: object) -> TransportGone:
        return TransportGone(f"there is no lender at {self._address}: {why}; see whether its agent runs")

    def _timed_out(self) -> TransportTimeout:
        return TransportTimeout(
            f"the link to {self._address}: no connection within {self._seconds:g} s; see whether the lender's host is "
            "suspended or its processes are frozen"
        )
