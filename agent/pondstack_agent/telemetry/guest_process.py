"""What only root may read of a guest's process: here where the agent is root, else in its privileged process.

`proc` is another folder than /proc in tests only.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from pondstack_agent.qemu import process as qemu
from pondstack_agent.telemetry import pagemap, privileged
from pondstack_agent.telemetry.pagemap import PROC, Present
from pondstack_agent.telemetry.perf import Counts, Event, Group


def text(pid: int, name: str, proc: Path = PROC) -> str:
    """Return maps, numa_maps or smaps; raises OSError."""
    if _elsewhere(proc):
        return str(privileged.text(pid, name))
    return (proc / str(pid) / name).read_text()


def clear_refs(pid: int, proc: Path = PROC) -> None:
    """Clear the accessed bits of its pages; raises OSError."""
    if _elsewhere(proc):
        privileged.clear_refs(pid)
    else:
        (proc / str(pid) / "clear_refs").write_text("1")


def present(pid: int, start: int, end: int, proc: Path = PROC) -> Present:
    """Return what is present from address `start` to `end` - 1; raises OSError."""
    if _elsewhere(proc):
        return Present(*privileged.present(pid, start, end))
    return pagemap.look(pid, start, end, proc)


def block_bytes(pid: int, name: str, proc: Path = PROC) -> int:
    """Return the size of the blocks of the file behind a mapping; raises OSError."""
    if _elsewhere(proc):
        return int(privileged.block_bytes(pid, name))
    return os.statvfs(_mapped_file(pid, name, proc)).f_bsize


def allocated_bytes(pid: int, name: str, start: int, end: int, proc: Path = PROC) -> int:
    """Return how many bytes of a range of the file behind a mapping have storage; raises OSError."""
    if _elsewhere(proc):
        return int(privileged.allocated_bytes(pid, name, start, end))
    return pagemap.allocated_bytes(_mapped_file(pid, name, proc), start, end)


def under_kvm(pid: int, proc: Path = PROC) -> bool:
    """Return whether it runs under KVM; raises OSError."""
    if _elsewhere(proc):
        return bool(privileged.under_kvm(pid))
    return qemu.under_kvm(pid, proc)


class Counters:
    """Counters of threads of guests, one group of events for each; close() is idempotent."""

    def __init__(self) -> None:
        self._groups: list[Group] = []
        self._numbers: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._groups or self._numbers)

    def add(self, tid: int, events: Sequence[Event], *, guest_only: bool) -> None:
        """Count events of one more thread; raises NotCounted, OSError."""
        if privileged.context.elsewhere:
            words = [(event.type, event.config) for event in events]
            self._numbers.append(privileged.open_counters(tid, words, guest_only))
        else:
            self._groups.append(Group(tid, events, guest_only=guest_only))

    def read(self) -> list[Counts]:
        """Return the sums of each thread, in the order in which they were added."""
        if self._numbers:
            return [Counts(running, tuple(values)) for running, values in privileged.read_counters(self._numbers)]
        return [group.read() for group in self._groups]

    def close(self) -> None:
        """Count no more."""
        while self._numbers:
            privileged.close_counters(self._numbers.pop())
        while self._groups:
            self._groups.pop().close()


def _mapped_file(pid: int, name: str, proc: Path) -> Path:
    """Return a name for the file behind a mapping that works for unlinked ones and in other mount namespaces."""
    return proc / str(pid) / "map_files" / name


def _elsewhere(proc: Path) -> bool:
    return proc == PROC and privileged.context.elsewhere
