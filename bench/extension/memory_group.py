"""A memory cgroup for the processes of a turn, of version 1 or 2; it is removed again."""

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.extension.interruption import deferred
from bench.extension.swap_areas import CannotMeasure
from pondstack_rack.wait import wait_until

VERSION_1, VERSION_2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
_MIB = 2**20
_END_SECONDS = 30.0


class MemoryGroup:
    """One group. `limit` may be set while processes are in it; what is above is swapped, or dropped from the cache."""

    def __init__(self, name: str) -> None:
        self._old = (VERSION_1 / "memory.limit_in_bytes").exists() or (VERSION_1 / "cgroup.procs").exists()
        root = VERSION_1 if self._old else VERSION_2
        if not self._old and "memory" not in _words(root / "cgroup.subtree_control"):
            raise CannotMeasure(
                f"no memory cgroups below {root}: mount them, or enable +memory in cgroup.subtree_control"
            )
        self._path = root / f"pondstack-bench-{os.getpid()}-{name}"

    def make(self) -> None:
        """Make it; one of version 1 swaps as eagerly as it can."""
        self._path.mkdir()
        if self._old:
            self._write("memory.swappiness", 100)

    def remove(self) -> None:
        """Remove it, if it is there, with the processes left in it, such as one whose start was interrupted."""
        with deferred():
            if not wait_until(self._removed, _END_SECONDS, 0.01):
                raise CannotMeasure(f"processes in {self._path} do not end: remove it when they have")

    def _removed(self) -> bool:
        """End who is in it and remove it; False: somebody is in it, as a child that moves in only now."""
        for pid in _words(self._path / "cgroup.procs"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        try:
            self._path.rmdir()
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        return not self._path.exists()

    def take(self, pid: int) -> None:
        """Move a process in; what it allocates from now on counts."""
        self._write("cgroup.procs", pid)

    @property
    def joins(self) -> Callable[[], None]:
        """For a child, before it runs another program: move in."""
        return lambda: self.take(os.getpid())

    def limit(self, mib: int) -> None:
        """Have at most so much stay in memory, beside what the group uses now."""
        used = int((self._path / ("memory.usage_in_bytes" if self._old else "memory.current")).read_text())
        self._write("memory.limit_in_bytes" if self._old else "memory.max", used + mib * _MIB)

    def _write(self, name: str, value: int) -> None:
        (self._path / name).write_text(str(value))


@contextlib.contextmanager
def memory_group(name: str) -> Iterator[MemoryGroup]:
    """Have a group in the block. A signal at any moment, also while it is made, leaves none."""
    group = MemoryGroup(name)
    try:
        group.make()
        yield group
    finally:
        try:
            group.remove()
        finally:  # of signals one is heard: it may have interrupted the removal before it deferred any
            group.remove()


def _words(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []
