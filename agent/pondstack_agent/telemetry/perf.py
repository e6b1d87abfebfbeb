"""Hardware counters of single threads by perf_event_open(2), without the perf tool. Effects only.

A group of events is counted together or not at all, so that their ratios hold also where the kernel shares the counters
out over time (PERF_FORMAT_GROUP of perf_event_open(2)).
"""

import ctypes
import errno
import os
import platform
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HARDWARE = 0
"""PERF_TYPE_HARDWARE."""
RAW = 4
"""PERF_TYPE_RAW: an event of this model of processor, by its code."""
CYCLES, INSTRUCTIONS, CACHE_MISSES = 0, 1, 3
"""PERF_COUNT_HW_CPU_CYCLES, _INSTRUCTIONS, _CACHE_MISSES."""
DEVICE = Path("/sys/bus/event_source/devices/cpu")
"""The PMU of the CPUs; a machine without one, as most virtual machines, has no such folder."""

_SYSCALL = {"x86_64": 298, "aarch64": 241}
# struct perf_event_attr, PERF_ATTR_SIZE_VER0: type, size, config, sample_period, sample_type, read_format, flags,
# wakeup_events, bp_type, config1.
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
_READ_FORMAT = (1 << 0) | (1 << 1) | (1 << 3)
"""PERF_FORMAT_TOTAL_TIME_ENABLED, _TOTAL_TIME_RUNNING, _GROUP."""
_EXCLUDE_HOST = 1 << 19
_CLOSE_ON_EXEC = 1 << 3
_HEADER_WORDS = 3
_WORD_BYTES = 8

_REASONS = {
    errno.ENOENT: "this machine has no such counters",
    errno.ENODEV: "this machine has no such counters",
    errno.EOPNOTSUPP: "this machine has no such counters",
    errno.EACCES: "the agent may not count: it needs CAP_PERFMON, or kernel.perf_event_paranoid 0",
    errno.EPERM: "the agent may not count: it needs CAP_PERFMON, or kernel.perf_event_paranoid 0",
    errno.EMFILE: "the agent has too many open files: raise its LimitNOFILE",
    errno.ENOSYS: "this kernel cannot count (no perf events)",
}


@dataclass(frozen=True, slots=True)
class Event:
    """What is counted: perf_event_attr's type and config."""

    type: int
    config: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums since the counters were opened. `running`: nanoseconds for which the group really counted."""

    running: int
    values: tuple[int, ...]


class NotCounted(Exception):
    """Counters cannot be had; the text says why."""


def event_of(name: str, device: Path = DEVICE) -> Event | None:
    """Return an event that the PMU names itself, None when it does not have it, or not in terms of event and umask."""
    try:
        text = (device / "events" / name).read_text().strip()
        kind = int((device / "type").read_text())
    except OSError:
        return None
    match = re.fullmatch(r"event=(0x[0-9a-f]+)(?:,umask=(0x[0-9a-f]+))?", text)
    return Event(kind, int(match[1], 16) | int(match[2] or "0", 16) << 8) if match else None


class Group:
    """Counters of one thread. close() is idempotent."""

    def __init__(self, tid: int, events: Sequence[Event], *, guest_only: bool) -> None:
        """Count from now on; `guest_only`: not what the thread does for the host. Raises NotCounted."""
        self._handles: list[int] = []
        try:
            for event in events:
                self._handles.append(_open(tid, event, self._handles[0] if self._handles else -1, guest_only))
        except OSError as error:
            self.close()
            code = error.errno or 0
            raise NotCounted(_REASONS.get(code, f"perf_event_open: {error.strerror}")) from error

    def read(self) -> Counts:
        """Return the sums, also of a thread that has ended."""
        size = (_HEADER_WORDS + len(self._handles)) * _WORD_BYTES
        data = os.read(self._handles[0], size)
        _, _, running, *values = struct.unpack(f"={len(data) // _WORD_BYTES}Q", data)
        return Counts(running, tuple(values))

    def close(self) -> None:
        """Count no more."""
        while self._handles:
            os.close(self._handles.pop())


def _open(tid: int, event: Event, leader: int, guest_only: bool) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    flags = _EXCLUDE_HOST if guest_only else 0
    packed = _ATTRIBUTES.pack(event.type, _ATTRIBUTES.size, event.config, 0, 0, _READ_FORMAT, flags, 0, 0, 0)
    attributes = ctypes.create_string_buffer(packed, _ATTRIBUTES.size)
    libc = ctypes.CDLL(None, use_errno=True)
    handle: int = libc.syscall(number, attributes, tid, -1, leader, _CLOSE_ON_EXEC)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return handle
