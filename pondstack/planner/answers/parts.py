"""The parts of a sweep: their keys, what they are reckoned by, and their records."""

from dataclasses import asdict
from typing import Any

from pondstack.planner import stranding
from pondstack.planner.cell import Base, Task, base_of, cell_of
from pondstack.planner.energy.simulation import simulate
from pondstack.planner.energy.systems import SYSTEMS
from pondstack.planner.history import History
from pondstack.planner.settings import VARIANTS, Settings
from pondstack.planner.sweep import Record

Part = tuple[str, Any, tuple[Any, ...]]
GIB = 1024
SIZE = 16
"""The pool that Pond's own figures are of (section 6.5)."""


class Grid:
    """All cells that settings ask for and that a cluster of so many sockets has pools for."""

    def __init__(self, settings: Settings, sockets: int) -> None:
        self.pool_sockets = tuple(size for size in settings.pool_sockets if 2 <= size <= sockets)
        self.kinds = tuple(
            (policy, topology, size)
            for policy in settings.policies
            for topology in settings.topologies
            for size in self.pool_sockets
        )
        self.tasks = tuple(
            Task(seed, *kind, share) for seed in settings.seeds for kind in self.kinds for share in settings.pool_shares
        )
        self.asked = tuple(kind for kind in self.kinds if kind[0] == "pond" and kind[1:] == self._asked(settings))
        self.otherwise = tuple(
            Task(seed, *kind, share, variant)
            for seed in settings.seeds
            for kind in self.asked
            for share in settings.pool_shares
            for variant in VARIANTS
        )

    def _asked(self, settings: Settings) -> tuple[str, int]:
        """Return topology and size for which causes are looked for: Pond's own figures' size, or the largest."""
        size = SIZE if SIZE in self.pool_sockets else max(self.pool_sockets, default=0)
        return next(iter(settings.topologies), ""), size


def key_of(task: Task) -> str:
    """Return the key of a cell."""
    variant = f"-{task.variant}" if task.variant else ""
    return f"{task.policy}-{task.topology}-{task.pool_sockets}-{task.share:g}-{task.seed}{variant}"


def base_part(seed: int, history: History, settings: Settings) -> Part:
    """Return the part that finds the baseline of a seed and looks at what is stranded."""
    return f"base-{seed}", _base, (history, settings)


def _base(history: History, settings: Settings) -> Record:
    base = base_of(history, settings)
    mib = settings.dram_gib_per_socket * GIB or base.mib_per_socket
    seen = asdict(stranding.seen(history, settings, mib))
    return {"limit": base.limit, "mib_per_socket": base.mib_per_socket, "seen": seen}


def cell_part(base: Base, task: Task, settings: Settings) -> Part:
    """Return the part that reckons one cell."""
    return key_of(task), _cell, (base, task, settings)


def _cell(base: Base, task: Task, settings: Settings) -> Record:
    return asdict(cell_of(base, task, settings))


def energy_part(history: History, seed: int, kind: str, system: str, settings: Settings) -> Part:
    """Return the part that reckons the energy of one system."""
    return f"energy-{kind}-{system}-{seed}", _energy, (history, kind, system, settings)


def _energy(history: History, kind: str, system: str, settings: Settings) -> Record:
    return asdict(simulate(history, kind, SYSTEMS[system], settings))
