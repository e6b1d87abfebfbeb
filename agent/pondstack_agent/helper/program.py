"""A helper of the agent: a process that outlives it, has a folder of its own, and is found again by that folder."""

from dataclasses import dataclass
from pathlib import Path

from pondstack_agent.helper.lock import lock_held, pid_of


@dataclass(frozen=True, slots=True)
class Program:
    """What a helper is called, and the names of the files in its folder. `options`: its group of options.

    `abilities`: capabilities that it keeps, beside that to lock its memory, where it is started as root."""

    name: str
    title: str
    module: str
    options: str
    lock: str
    socket: str
    log: str
    abilities: frozenset[int] = frozenset()

    def runs(self, folder: Path) -> bool:
        """Return whether the process of a folder lives; raises OSError when that cannot be told."""
        return lock_held(folder / self.lock)

    def pid(self, folder: Path) -> int:
        """Return the id of the newest process of a folder; raises OSError, Unavailable."""
        return pid_of(folder / self.lock)
