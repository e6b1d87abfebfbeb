"""An emulation of sleep for hosts that share one machine: agent and nova-compute are stopped, and nothing is saved.

The lender's process goes on serving, as the memory of a zombie does; what is tried by it is the life cycle, no power.
"""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from pondstack.domain.errors import Unavailable
from pondstack.domain.power import FROZEN
from pondstack_agent.power.base import PowerDriver

PROC = Path("/proc")


class Frozen(PowerDriver):
    """Stops the processes whose command lines match one of `patterns`, and their children, until woken."""

    mode = FROZEN

    def __init__(self, patterns: Iterable[str], find: Callable[[Iterable[str]], list[int]] | None = None) -> None:
        self._patterns = tuple(patterns)
        self._find = find or matching

    def refusal(self) -> str:
        """Return why this host cannot sleep so."""
        if not self._patterns:
            return "it emulates sleep, and [power] frozen_commands says of no process that it is the host's"
        return "" if self._find(self._patterns) else f"no process is one of [power] frozen_commands {self._patterns}"

    def enter(self, woken: threading.Event) -> None:
        """Stop them, and have them go on when woken."""
        stopped: list[int] = []
        try:
            for pid in self._find(self._patterns):
                _signal(pid, signal.SIGSTOP)
                stopped.append(pid)
            woken.wait()
        finally:
            for pid in reversed(stopped):
                _signal(pid, signal.SIGCONT)

    def restore(self) -> None:
        """Have processes go on that a waker which died has left stopped."""
        for pid in self._find(self._patterns):
            _signal(pid, signal.SIGCONT)


def matching(patterns: Iterable[str]) -> list[int]:
    """Return the processes whose command lines match one of some patterns, and their children; this one apart."""
    wanted, found, parents = [re.compile(pattern) for pattern in patterns], set(), {}
    for folder in PROC.iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with suppress(OSError):  # it has ended meanwhile
                pid = int(folder.name)
                parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if any(pattern.search(line) for pattern in wanted):
                    found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        raise Unavailable(f"process {pid} is another user's: start pondstack-waker as root") from error
