"""librdmacm, by rdma/native/manager.c: not by pyverbs, which waits for its events with Python's global lock held."""

import importlib
from enum import IntEnum
from typing import Protocol

from pondstack_rdma.errors import NoDevice


class Event(IntEnum):
    """Of rdma_cm_event_type, those that are told apart here."""

    ADDRESS_RESOLVED = 0
    ADDRESS_ERROR = 1
    ROUTE_RESOLVED = 2
    REQUEST = 4
    RESPONSE = 5
    UNREACHABLE = 7
    REJECTED = 8
    ESTABLISHED = 9
    DISCONNECTED = 10


NOBODY_LISTENS, REFUSED_BY_LENDER = 8, 28
"""Statuses of a rejection (InfiniBand specification, 12.6.7.2)."""


class Identifier(Protocol):
    """One connection, or what listens for them. All raise OSError, and ValueError when it is closed."""

    port: int
    device: str

    def resolve_route(self, milliseconds: int, /) -> None:
        """Look for the way; an event tells the outcome."""

    def path(self) -> tuple[bytes, int, int, int, int, int, int, int, int]:
        """Return the fields of Path, after a request or a response."""

    def connect(self, number: int, data: bytes, /) -> None:
        """Ask the other side to take a queue pair; with 56 bytes at most."""

    def accept(self, number: int, reads: int, data: bytes, /) -> None:
        """Answer with one; with 196 bytes at most."""

    def reject(self, data: bytes, /) -> None:
        """Refuse; with 148 bytes at most."""

    def establish(self) -> None:
        """Confirm the answer."""

    def close(self) -> None:
        """Give it back; idempotent. The other side is told."""


class Channel(Protocol):
    """What events arrive at. Its calls never wait; all raise OSError."""

    def listen(self, address: str, backlog: int, /) -> Identifier:
        """Listen on a free port of an address."""

    def resolve(self, address: str, port: int, milliseconds: int, /) -> Identifier:
        """Look for the device that leads there; an event tells the outcome."""

    def event(self) -> tuple[int, Identifier, int, bytes] | None:
        """Return kind, whose it is, status and private data, zeros behind them; None when there is none."""

    def fileno(self) -> int:
        """Readable when there is an event."""

    def close(self) -> None:
        """After its identifiers; idempotent."""


class ChannelType(Protocol):
    """Makes them."""

    def __call__(self) -> Channel:
        """Make one; raises OSError."""


def open_channel() -> Channel:
    """Return a new channel; raises NoDevice."""
    try:
        made: ChannelType = importlib.import_module("pondstack_rdma._cm").Channel
    except ImportError as error:
        raise NoDevice(
            f"the compiled part for librdmacm is missing ({error}); install librdmacm1, or librdmacm-dev and gcc where "
            "the wheel is built; `python3 -c 'import pondstack_rdma._cm'` shows what it is"
        ) from error
    try:
        return made()
    except OSError as error:
        raise NoDevice(
            f"librdmacm finds no device to connect by ({error}); `rdma link` and `ibv_devices` show those that there "
            "are; without /dev/infiniband/rdma_cm: `modprobe rdma_ucm`"
        ) from error
