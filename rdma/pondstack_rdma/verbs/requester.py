"""The borrower's side of a connection: rdma/native, its staging memory, and what it is made of here.

What is transferred passes through staging memory that the device knows: registering a caller's buffer costs more than
copying pages.
"""

import importlib
import ipaddress
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pondstack_rdma.errors import NoDevice, RegistrationFailed, TransportGone
from pondstack_rdma.model import Key, Operation, Read, ReadableBuffer, WritableBuffer, Write
from pondstack_rdma.verbs.memory import PinnedMemory
from pondstack_rdma.verbs.path import RETRIES, Path, acknowledge_exponent

HUNG_UP, SILENT, BROKEN, LEFT_TO_PYTHON = -1, -2, -3, -4
"""Beside the statuses of verbs: the lender's process ended; no completion by the deadline; a call of verbs failed;
nothing was done."""


class Request(NamedTuple):
    """One transfer between a buffer and what the lender's device knows as `rkey`."""

    is_read: bool
    address: int
    rkey: int
    local: memoryview


class Native(Protocol):
    """rdma/native/requester.c: one call at a time; statuses are those above, of verbs, or 0."""

    number: int
    """Of the queue pair."""

    def connect(  # the struct Peer of line.h
        self,
        gid: bytes,
        number: int,
        their_packet: int,
        our_packet: int,
        port: int,
        gid_index: int,
        mtu: int,
        reads: int,
        traffic_class: int,
        timeout: int,
        retries: int,
        /,
    ) -> None:
        """Connect to a peer; raises OSError."""

    def add(self, key: Key, address: int, rkey: int, size: int, /) -> bool:
        """Know a window by the identity of its key; False when there is no room for it."""

    def remove(self, key: Key, /) -> None:
        """Forget a window."""

    def read(self, key: Key, offset: int, into: WritableBuffer, /) -> int:
        """Read within the time-out of the link: the status."""

    def write(self, key: Key, offset: int, data: ReadableBuffer, /) -> int:
        """Write; as with `read`."""

    def batch(self, operations: Sequence[Operation], /) -> tuple[int, int]:
        """Carry out operations: how many are complete, and the status of the next one, or 0."""

    def time_reads(self, key: Key, offset: int, into: WritableBuffer, count: int, /) -> bytes:
        """Read so often, one after the other, as a caller in C would: the nanoseconds of each, as int64.

        Fewer when one failed; none when Python has to look at it.
        """

    def carry_out(self, requests: tuple[Request, ...], seconds: float, /) -> tuple[int, int]:
        """Carry out requests that nobody checks; raises ValueError after another status than 0."""

    def close(self) -> None:
        """Give all back; idempotent."""


class NativeType(Protocol):
    """Makes them."""

    def __call__(
        self,
        device: str,
        manager: int,
        control: int,
        depth: int,
        stage: memoryview,
        seconds: float,
        read: type[Read],
        write: type[Write],
        /,
    ) -> Native:
        """Make one; raises OSError."""


def native() -> NativeType:
    """Return the compiled type; raises NoDevice."""
    try:
        made: NativeType = importlib.import_module("pondstack_rdma._verbs").Requester
    except ImportError as error:
        raise NoDevice(
            f"the compiled part of the verbs transport is missing ({error}); install libibverbs1, or "
            "libibverbs-dev and gcc where the wheel is built; `python3 -c 'import pondstack_rdma._verbs'` shows what "
            "it is"
        ) from error
    return made


class Requester:
    """One batch at a time; its caller sees to that. Raises NoDevice, RegistrationFailed.

    `manager` is a descriptor that is readable, `control` one that is hung up, once the lender has ended.
    """

    def __init__(self, device: str, manager: int, control: int, depth: int, stage_bytes: int, seconds: float) -> None:
        make = native()
        self._stage = PinnedMemory(stage_bytes)
        try:
            self.line = make(device, manager, control, depth, self._stage.view, seconds, Read, Write)
        except OSError as error:
            self._stage.close()
            raise RegistrationFailed(
                f"the RDMA device gives no more: {error}; see `rdma resource`, `ulimit -l` and `ulimit -n`"
            ) from error

    def connect(self, path: Path, seconds: float) -> None:
        """Make it ready for a peer. An answer is waited for so long, retries included. Raises TransportGone."""
        try:
            self.line.connect(*path, acknowledge_exponent(seconds), RETRIES)
        except OSError as error:
            gid = ipaddress.IPv6Address(path.gid)
            raise TransportGone(f"no connection to {gid}: {error}; see `rdma link` at both sides") from error

    def carry_out(self, requests: Sequence[Request], ends: float) -> tuple[int, int]:
        """Do a batch by the monotonic time `ends`: how many are complete, and the status of the next one, or 0.

        After another status than 0 it is of no more use.
        """
        return self.line.carry_out(tuple(requests), max(ends - time.monotonic(), 0.0))

    def close(self) -> None:
        """Give all back; idempotent."""
        self.line.close()
        self._stage.close()
