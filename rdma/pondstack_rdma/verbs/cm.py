"""librdmacm, by rdma/native/cm_channel.c. pyverbs would wait for CM events with Python's global lock held."""

import importlib
from enum import IntEnum
from typing import Protocol

from pondstack_rdma.errors import NoDevice


class Event(IntEnum):
    """The values of rdma_cm_event_type that this package distinguishes."""

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


class CmId(Protocol):
    """An rdma_cm_id: a connection, or a listener. All methods raise OSError, and ValueError after `close`."""

    port: int
    device: str

    def resolve_route(self, milliseconds: int, /) -> None:
        """Resolve the route; an event reports the result."""

    def attrs(self) -> tuple[bytes, int, int, int, int, int, int, int, int]:
        """Return the fields of CmAttrs, after a connection request or a response."""

    def connect(self, qpn: int, data: bytes, /) -> None:
        """Send a connection request for a queue pair, with at most 56 bytes of private data."""

    def accept(self, qpn: int, max_rd_atomic: int, data: bytes, /) -> None:
        """Accept a connection request with a queue pair, and at most 196 bytes of private data."""

    def reject(self, data: bytes, /) -> None:
        """Reject a connection request, with at most 148 bytes of private data."""

    def establish(self) -> None:
        """Acknowledge the response."""

    def close(self) -> None:
        """Disconnect and destroy the id; idempotent."""


class Channel(Protocol):
    """An rdma_event_channel. Its methods never wait. All raise OSError, and ValueError after `close`."""

    def listen(self, address: str, backlog: int, /) -> CmId:
        """Listen on a free port of an address."""

    def resolve(self, address: str, port: int, milliseconds: int, /) -> CmId:
        """Resolve the address, which chooses a device; an event reports the result."""

    def event(self) -> tuple[int, CmId, int, bytes] | None:
        """Return the kind, the id, the status and the private data, which zeros follow; None if there is no event."""

    def fileno(self) -> int:
        """Return the descriptor; it is readable when there is an event."""

    def close(self) -> None:
        """Destroy the channel, after all its ids are closed; idempotent."""


class ChannelType(Protocol):
    """The compiled type."""

    def __call__(self) -> Channel:
        """Return a new channel; raises OSError."""


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
