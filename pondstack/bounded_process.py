"""A child process that computes beside a service: bounded memory and CPU time, the lowest priority, and no orphan.

What computes for minutes is no thread of a controller: it would take the interpreter from the threads that keep the
lease.
"""

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024
NICENESS = 19
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS", "NUMBA_NUM_THREADS")
"""Libraries take address space for each thread that they might use."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the child process: wall-clock time, and address space in MiB."""

    seconds: int
    memory_mib: int


Started = Callable[[subprocess.Popen[bytes]], object]
"""Is told of the child process, which may be killed at any time."""


def begin(module: str, folder: Path, limits: Limits, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start `python -m MODULE FOLDER` within limits; `more`: of its environment.

    Its standard input is a pipe that ends with this process: see end_with_parent().
    """
    command = [sys.executable, "-W", "ignore", "-m", module, str(folder)]
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), **(more or {})}
    child = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    try:
        _bound(child.pid, limits)
    except BaseException:
        end(child)
        raise
    return child


def end(child: subprocess.Popen[bytes]) -> None:
    """Kill a child, unless it has ended, and wait for it."""
    child.kill()
    child.wait()
    if child.stdin:
        child.stdin.close()


class OnlyChild:
    """The child, one at a time, of an owner that ends: one that starts at that moment is killed, too. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether the owner ends."""
        return self._stopping

    def started(self, child: subprocess.Popen[bytes]) -> None:
        """Take a child that has been started."""
        with self._lock:
            self._child = child
            if self._stopping:
                child.kill()

    def ended(self) -> None:
        """Forget the child, which has ended."""
        with self._lock:
            self._child = None

    def stop(self) -> None:
        """Kill the child that there is, and each that comes."""
        with self._lock:
            self._stopping = True
            if self._child is not None:
                self._child.kill()


def _bound(pid: int, limits: Limits) -> None:
    """From outside: Python code between fork and exec may hang in a process that has threads, as a leader has."""
    resource.prlimit(pid, resource.RLIMIT_AS, (limits.memory_mib * MIB, limits.memory_mib * MIB))
    resource.prlimit(pid, resource.RLIMIT_CPU, (limits.seconds, limits.seconds))
    os.setpriority(os.PRIO_PROCESS, pid, NICENESS)


def end_with_parent() -> None:
    """In the child: have this process end at once when its parent does, which closes the pipe."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()
