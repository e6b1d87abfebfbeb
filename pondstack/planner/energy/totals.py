"""Energy over all seeds, and what each system saves against none."""

from collections.abc import Mapping
from typing import Any

from pondstack.planner.energy.systems import HISTORIES, SYSTEMS
from pondstack.planner.estimate import estimate
from pondstack.planner.figures import Energy
from pondstack.planner.settings import Settings


def energy_answers(used: Mapping[str, Mapping[str, Any]], settings: Settings) -> tuple[Energy, ...]:
    """Return the answers; `used` by energy-HISTORY-SYSTEM-SEED."""
    return tuple(_answer(used, kind, system, settings) for kind in HISTORIES for system in SYSTEMS)


def _answer(used: Mapping[str, Mapping[str, Any]], kind: str, system: str, settings: Settings) -> Energy:
    def figures(which: str, name: str) -> list[float]:
        return [float(used[f"energy-{kind}-{which}-{seed}"][name]) for seed in settings.seeds]

    kwh, before = figures(system, "kwh"), figures("none", "kwh")
    saved = [100 * (1 - one / other) if other else 0.0 for one, other in zip(kwh, before, strict=True)]
    return Energy(
        history=kind,
        profile=settings.power_profile,
        system=system,
        saved_percent=estimate(saved, settings),
        kwh=estimate(kwh, settings),
        awake_hosts=estimate(figures(system, "awake_hosts"), settings),
        memory_machines=estimate(figures(system, "memory_machines"), settings),
        idle_percent=estimate(figures(system, "idle_percent"), settings),
    )
