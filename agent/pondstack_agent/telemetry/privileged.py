"""What telemetry reads of guests' processes and needs root for, by oslo.privsep: of guests, and of nobody else.

Two verbs change something: the accessed bits of a guest's pages, and DAMON.
"""

import errno
import itertools
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path

from oslo_privsep import capabilities

from pondstack_agent.host import memory_users
from pondstack_agent.privilege.context import Context
from pondstack_agent.qemu import process as qemu
from pondstack_agent.telemetry import damon_attributes, pagemap
from pondstack_agent.telemetry.perf import Event, Group

# What processes of other users map; the files behind it by map_files; their counters. Folders and files of a process
# in /proc are its user's: even root needs the first to list map_files and fd, and to write clear_refs.
context = Context(
    "telemetry",
    __name__,
    [
        capabilities.CAP_DAC_OVERRIDE,
        capabilities.CAP_SYS_PTRACE,
        capabilities.CAP_CHECKPOINT_RESTORE,
        capabilities.CAP_PERFMON,
    ],
)

_PROC = Path("/proc")
_DAMON = "/sys/kernel/mm/damon/admin/kdamonds"
_TEXTS = frozenset({"maps", "numa_maps", "smaps"})
_RANGE = re.compile(r"[0-9a-f]{1,16}-[0-9a-f]{1,16}")
_PID_TARGET = "0/contexts/0/targets/0/pid_target"
_WATCHED = "0/contexts/0"
_ATTRIBUTE = re.compile(
    rf"nr_kdamonds|0/(?:state|pid)|0/contexts/nr_contexts|{_WATCHED}/(?:operations"
    r"|monitoring_attrs/(?:intervals/(?:sample_us|aggr_us)|nr_regions/max)"
    r"|targets/(?:nr_targets|0/(?:pid_target|regions/(?:nr_regions|\d+/(?:start|end))))"
    r"|schemes/(?:nr_schemes|0/(?:action|access_pattern/(?:sz|nr_accesses|age)/max)))"
)
_TRIED = f"{_WATCHED}/schemes/0/tried_regions"
_TEXT = re.compile(r"\d{1,20}|on|off|update_schemes_tried_regions|fvaddr|stat")
_MOST_EVENTS = 16

_groups: dict[int, Group] = {}
_numbers = itertools.count(1)
_lock = threading.Lock()


@context.entrypoint
def text(pid: int, name: str) -> str:
    """Return maps, numa_maps or smaps of a guest's process; raises OSError."""
    if name not in _TEXTS:
        raise ValueError(f"{name!r} is nothing that telemetry reads")
    return (_guest(pid) / name).read_text()


@context.entrypoint
def clear_refs(pid: int) -> None:
    """Clear the accessed bits of a guest's pages; raises OSError."""
    (_guest(pid) / "clear_refs").write_text("1")


@context.entrypoint
def present(pid: int, start: int, end: int) -> tuple[int, int | None]:
    """Return what is present of a guest's range of addresses, and of that in huge pages; raises OSError."""
    _guest(pid)
    found = pagemap.look(pid, int(start), int(end))
    return found.touched_bytes, found.huge_bytes


@context.entrypoint
def block_bytes(pid: int, name: str) -> int:
    """Return the size of the blocks of the file behind a guest's mapping; raises OSError."""
    return os.statvfs(_mapped_file(pid, name)).f_bsize


@context.entrypoint
def allocated_bytes(pid: int, name: str, start: int, end: int) -> int:
    """Return how many bytes of a range of the file behind a guest's mapping have storage; raises OSError."""
    return pagemap.allocated_bytes(_mapped_file(pid, name), int(start), int(end))


@context.entrypoint
def under_kvm(pid: int) -> bool:
    """Return whether a guest runs under KVM; raises OSError."""
    _guest(pid)
    return qemu.under_kvm(pid)


@context.entrypoint
def read_damon(name: str) -> str:
    """Return an attribute of DAMON; raises OSError."""
    return damon_attributes.read(Path(_DAMON, _attribute(name)))


@context.entrypoint
def used_regions() -> list[tuple[int, int]]:
    """Return the ranges of addresses that DAMON found used; raises OSError."""
    return damon_attributes.used(Path(_DAMON, _TRIED))


@context.entrypoint
def write_damon(name: str, value: str) -> None:
    """Write an attribute of DAMON, which may watch a guest; raises OSError."""
    _attribute(name)
    if not _TEXT.fullmatch(value):
        raise ValueError(f"{value!r} is nothing that DAMON is told")
    if name == _PID_TARGET:
        _guest(int(value))
    damon_attributes.write(Path(_DAMON, name), value)


@context.entrypoint
def open_counters(tid: int, events: Sequence[tuple[int, int]], guest_only: bool) -> int:
    """Count events of a guest's thread; return a number for them. Raises NotCounted, OSError."""
    if len(events) > _MOST_EVENTS:
        raise ValueError(f"{len(events)} events are more than a processor has counters")
    _guest(_process_of(tid))
    group = Group(int(tid), [Event(int(kind), int(code)) for kind, code in events], guest_only=bool(guest_only))
    with _lock:
        number = next(_numbers)
        _groups[number] = group
    return number


@context.entrypoint
def read_counters(numbers: Sequence[int]) -> list[tuple[int, tuple[int, ...]]]:
    """Return of each of these how long it counted, in nanoseconds, and its sums; raises OSError."""
    found = [_group(number).read() for number in numbers]
    return [(counts.running, counts.values) for counts in found]


@context.entrypoint
def close_counters(number: int) -> None:
    """Count no more."""
    with _lock:
        group = _groups.pop(number, None)
    if group is not None:
        group.close()


def _guest(pid: int) -> Path:
    """Return the folder of a guest's process; raises ProcessLookupError for any other."""
    if int(pid) < 1 or not memory_users.is_guest(pid):
        raise ProcessLookupError(errno.ESRCH, f"process {pid} is no guest")
    return _PROC / str(int(pid))


def _mapped_file(pid: int, name: str) -> Path:
    """Return a name for the file behind a mapping, which the kernel calls by its addresses."""
    if not _RANGE.fullmatch(name):
        raise ValueError(f"{name!r} is no mapping")
    return _guest(pid) / "map_files" / name


def _attribute(name: str) -> str:
    if not _ATTRIBUTE.fullmatch(name):
        raise ValueError(f"{name!r} is no attribute of DAMON's that telemetry has to do with")
    return name


def _process_of(tid: int) -> int:
    status = (_PROC / str(int(tid)) / "status").read_text()
    return int(re.search(r"^Tgid:\s+(\d+)$", status, re.M)[1])  # type: ignore[index]


def _group(number: int) -> Group:
    with _lock:
        group = _groups.get(number)
    if group is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return group
