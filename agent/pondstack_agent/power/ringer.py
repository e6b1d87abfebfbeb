"""The other end of doorbells: connections of this host to those of hosts that sleep, made while they were awake."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pondstack.domain.errors import BadRequest, HostUnusable, NotFound, PondError, Unavailable
from pondstack_agent.power.doorbell import TOKEN_BYTES
from pondstack_rdma.base import Link, Transport
from pondstack_rdma.model import Key, Ticket


@dataclass(frozen=True, slots=True)
class _Connected:
    """One doorbell. `operation_id`: of the sleep that it is for."""

    operation_id: str
    link: Link
    key: Key
    token: bytes


class Ringer:
    """Of one host, one doorbell for each sleeper; an agent that ends forgets them. Thread-safe.

    `transport` None: this host has none to connect by; `seconds`: what a connection, or a ring, may take.
    """

    def __init__(self, transport: Transport | None, seconds: float) -> None:
        self._transport, self._seconds = transport, seconds
        self._lock = threading.Lock()
        self._connected: dict[str, _Connected] = {}

    def connect(self, sleeper: str, operation_id: str, ring: Mapping[str, Any]) -> None:
        """Connect to the doorbell of a host that is about to sleep, in place of that of a former sleep. Idempotent.

        Raises BadRequest, HostUnusable (no transport), Unavailable (it is not reached).
        """
        if self._transport is None:
            raise HostUnusable("this host rings nobody: [power] doorbell is off, or [lending] transport is empty")
        ticket, key, token = Ticket.from_dict(ring.get("ticket")), Key.from_dict(ring.get("key")), _token(ring)
        with self._lock:
            known = self._connected.get(sleeper)
            if known is not None and (known.operation_id, known.key) == (operation_id, key):
                return
            self._forget(sleeper)
            link = None
            try:
                link = self._transport.connect(ticket, self._seconds)
                link.open(key)
            except PondError as error:
                if link is not None:
                    link.close()
                raise Unavailable(f"the doorbell of host {sleeper} is not reached: {error.message}") from error
            self._connected[sleeper] = _Connected(operation_id, link, key, token)

    def ring(self, sleeper: str, operation_id: str) -> None:
        """Write the token of a sleep into its doorbell; returns once it is in the sleeper's memory.

        Raises NotFound (it is not connected for this sleep), Unavailable (it is not reached any more).
        """
        with self._lock:
            known = self._connected.get(sleeper)
            if known is None or known.operation_id != operation_id:
                raise NotFound(f"this host is not connected to the doorbell of host {sleeper} for that sleep")
            try:
                known.link.write(known.key, 0, known.token)
                known.link.flush()
            except PondError as error:
                self._forget(sleeper)
                raise Unavailable(f"the doorbell of host {sleeper} is not reached: {error.message}") from error

    def close(self) -> None:
        """Hang up on all of them."""
        with self._lock:
            for sleeper in list(self._connected):
                self._forget(sleeper)

    def _forget(self, sleeper: str) -> None:
        known = self._connected.pop(sleeper, None)
        if known is not None:
            known.link.close()


def _token(ring: Mapping[str, Any]) -> bytes:
    try:
        token = bytes.fromhex(ring["token"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadRequest("this is no ring of a doorbell: it has no token") from error
    if len(token) != TOKEN_BYTES:
        raise BadRequest(f"the token of a doorbell has {TOKEN_BYTES} bytes, not {len(token)}")
    return token
