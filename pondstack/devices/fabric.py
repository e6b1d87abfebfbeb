"""What a fabric manager does for a pool device with dynamic capacity (CXL 3.1, section 9.13.3).

A head is the port by which one host reaches the device. The driver (dcd.py) knows no protocol. One implementation
speaks QMP (qmp_fabric.py); one for Redfish would POST and DELETE memory chunks (`add`, `release`), and GET them
(`states`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A range of the device's dynamic-capacity region 0, in bytes from its start."""

    start_bytes: int
    size_bytes: int


class ExtentState(StrEnum):
    """What a head has of a range: nothing, an offer that its host has not answered, or at least a part, accepted."""

    ABSENT = "absent"
    OFFERED = "offered"
    ACCEPTED = "accepted"


class FabricManager(Protocol):
    """Adds extents to heads and asks for them back. It holds no state of its own, and never takes one by force."""

    def heads(self) -> Collection[str]:
        """Return the hosts that have a head, by name. Raises DeviceFailed."""

    def add(self, host: str, ranges: Sequence[ByteRange], *, tag: str) -> None:
        """Offer the ranges to `host`: all as one event, or none.

        Raises InUse when the head has, or was offered, a part of one; HostUnusable when there is no such head, it is
        off, or the ranges do not fit its region; DeviceFailed when it is unknown whether they were offered.
        """

    def release(self, host: str, ranges: Sequence[ByteRange]) -> None:
        """Ask `host` to give the ranges back; `states` tells whether it did. Raises DeviceFailed."""

    def states(self, host: str, ranges: Sequence[ByteRange]) -> list[ExtentState]:
        """Return what the head has of each range; a head that is off has nothing. Raises DeviceFailed."""
