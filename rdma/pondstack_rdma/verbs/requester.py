"""The borrower's side of a connection: the compiled requester of rdma/native and its staging memory.

Transfers are copied through staging memory, which is registered once: to register a caller's buffer costs more than to
copy pages.
"""

import importlib
import ipaddress
import logging
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pondstack_rdma.errors import NoDevice, RegistrationFailed, TransportGone
from pondstack_rdma.model import Key, Operation, Read, ReadableBuffer, WritableBuffer, Write
from pondstack_rdma.verbs.cm_attrs import RETRIES, CmAttrs, acknowledge_exponent
from pondstack_rdma.verbs.memory import PinnedMemory

LOG = logging.getLogger(__name__)

HUNG_UP, SILENT, BROKEN, LEFT_TO_PYTHON = -1, -2, -3, -4
"""Statuses that verbs does not have: the lender's process ended; no completion came by the deadline; a call of verbs
failed; nothing was done, and Python has to carry out the access."""


class Request(NamedTuple):
    """One transfer between a local buffer and the lender's memory."""

    is_read: bool
    address: int
    rkey: int
    local: memoryview


class Native(Protocol):
    """rdma/native/requester.c. One call at a time. A status is 0, an ibv_wc_status, or one of those above."""

    qpn: int
    """The number of the queue pair."""

    def connect(  # the struct Peer of rc_conn.h
        self,
        dgid: bytes,
        dest_qpn: int,
        rq_psn: int,
        sq_psn: int,
        port_num: int,
        sgid_index: int,
        path_mtu: int,
        max_rd_atomic: int,
        traffic_class: int,
        timeout: int,
        retry_cnt: int,
        /,
    ) -> None:
        """Move the queue pair to RTS; raises OSError."""

    def add(self, key: Key, address: int, rkey: int, size: int, /) -> bool:
        """Add a region, which is found by the identity of its key; False if the table has no room."""

    def remove(self, key: Key, /) -> None:
        """Remove a region; idempotent."""

    def read(self, key: Key, offset: int, into: WritableBuffer, /) -> int:
        """Read within the time-out of the link, and return the status."""

    def write(self, key: Key, offset: int, data: ReadableBuffer, /) -> int:
        """Write within the time-out of the link, and return the status."""

    def batch(self, operations: Sequence[Operation], /) -> tuple[int, int]:
        """Carry out operations. Return how many are complete, and the status of the next one, or 0."""

    def time_reads(self, key: Key, offset: int, into: WritableBuffer, count: int, /) -> bytes:
        """Read `count` times, as a caller in C would. Return the nanoseconds of each read, as int64.

        There are fewer if a read failed, and none if Python has to carry out the access.
        """

    def carry_out(self, requests: tuple[Request, ...], seconds: float, /) -> tuple[int, int]:
        """Carry out requests without checks; raises ValueError after an earlier status other than 0."""

    def close(self) -> bool:
        """Release everything; idempotent. False: the device keeps the queue pair, and the staging memory is held."""


class NativeType(Protocol):
    """The compiled type."""

    def __call__(
        self,
        device: str,
        cm_fd: int,
        control_fd: int,
        depth: int,
        stage: memoryview,
        seconds: float,
        read: type[Read],
        write: type[Write],
        /,
    ) -> Native:
        """Return a new requester; raises OSError."""


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
    """Serves one batch at a time; its caller ensures that. Raises NoDevice, RegistrationFailed.

    `cm_fd` is a descriptor that is readable once the lender has ended, `control_fd` one that is hung up then.
    """

    def __init__(self, device: str, cm_fd: int, control_fd: int, depth: int, stage_bytes: int, seconds: float) -> None:
        make = native()
        self._stage = PinnedMemory(stage_bytes)
        try:
            self.native = make(device, cm_fd, control_fd, depth, self._stage.view, seconds, Read, Write)
        except OSError as error:
            self._stage.close()
            raise RegistrationFailed(
                f"the RDMA device gives no more: {error}; see `rdma resource`, `ulimit -l` and `ulimit -n`"
            ) from error

    def connect(self, attrs: CmAttrs, seconds: float) -> None:
        """Connect to a peer. A request times out after `seconds`, retries included. Raises TransportGone."""
        try:
            self.native.connect(*attrs, acknowledge_exponent(seconds), RETRIES)
        except OSError as error:
            gid = ipaddress.IPv6Address(attrs.dgid)
            raise TransportGone(f"no connection to {gid}: {error}; see `rdma link` at both sides") from error

    def carry_out(self, requests: Sequence[Request], ends: float) -> tuple[int, int]:
        """Carry out a batch by the monotonic time `ends`. Return how many are complete, and the next one's status.

        A requester that returned another status than 0 cannot be used any more.
        """
        return self.native.carry_out(tuple(requests), max(ends - time.monotonic(), 0.0))

    def close(self) -> None:
        """Release everything; idempotent. What the device may still write to stays mapped while the process lives."""
        if self.native.close():
            self._stage.close()
        else:
            LOG.error("The RDMA device does not end a queue pair: %d bytes stay locked", len(self._stage.view))
