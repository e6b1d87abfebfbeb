"""What a job may ask for: settings within bounds, so that no request takes a controller's host for days.

`pondstack-planner`, which somebody runs on a machine of their own, has no such bounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pondstack.domain.errors import BadRequest
from pondstack.planner.settings import POLICIES, TOPOLOGIES, Settings

WORDS: Mapping[str, tuple[str, ...]] = {
    "policies": POLICIES,
    "topologies": TOPOLOGIES,
    "power_profile": ("hp", "dell"),
}
MOST_OF: Mapping[str, int] = {
    "seeds": 20,
    "pool_sockets": 8,
    "policies": len(POLICIES),
    "topologies": len(TOPOLOGIES),
    "pool_shares": 8,
    "overcommit_ratios": 10,
}
"""How many values a setting with several may have."""
RANGES: Mapping[str, tuple[float, float]] = {
    "seeds": (0, 2**31 - 1),
    "pool_sockets": (2, 64),
    "resamples": (1, 10_000),
    "sockets": (2, 512),
    "vcpus_per_socket": (1, 1024),
    "dram_gib_per_socket": (0, 65_536),
    "dram_step_mib": (64, 65_536),
    "pool_shares": (0.05, 4),
    "slice_mib": (64, 65_536),
    "cpu_weight_multiplier": (-1000, 1000),
    "ram_weight_multiplier": (-1000, 1000),
    "pool_weight_multiplier": (-1000, 1000),
    "buffer_least_slices": (0, 10_000),
    "offline_ms_per_gib": (0, 60_000),
    "host_failures_per_year": (0, 1000),
    "pool_failures_per_year": (0, 1000),
    "repair_hours": (0, 8760),
    "local_ns": (1, 10_000),
    "cxl_ns": (0, 10_000),
    "retimer_ns": (0, 10_000),
    "switch_ns": (0, 10_000),
    "host_watts": (0, 100_000),
    "energy_step_seconds": (60, 86_400),
    "energy_steps": (1, 1000),
    "gib_per_host": (0, 65_536),
    "memory_per_cpu": (0.1, 100),
    "overcommit_ratios": (1, 100),
    "dram_price_per_gib": (0, 1_000_000),
    "ssd_price_per_gib": (0, 1_000_000),
    "emc_price": (0, 10_000_000),
    "switch_price": (0, 10_000_000),
    "cable_price": (0, 10_000_000),
    "emc_watts": (0, 10_000),
    "switch_watts": (0, 10_000),
    "dram_watts_per_gib": (0, 1000),
    "energy_price_per_kwh": (0, 10_000),
    "lifetime_years": (0.1, 100),
}


@dataclass(frozen=True, slots=True)
class Bound:
    """Of one setting. `words`: those that it may be, (): a number from `least` to `most`. `many`: values, 0: one."""

    name: str
    unit: str
    about: str
    default: Any
    whole: bool
    least: float
    most: float
    words: tuple[str, ...]
    many: int

    def checked(self, value: Any) -> Any:
        """Return a value as Settings takes it; raises BadRequest."""
        if not self.many:
            return self._one(value)
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= self.many:
            raise BadRequest(f"{self.name}={value!r} is wrong; it must be a list of 1 to {self.many} values")
        found = tuple(self._one(item) for item in value)
        if len(set(found)) != len(found):
            raise BadRequest(f"{self.name}={value!r} is wrong; each value may be there once")
        return found

    def _one(self, value: Any) -> Any:
        if self.words:
            if value not in self.words:
                raise BadRequest(f"{self.name}={value!r} is wrong; use {', '.join(self.words)}")
            return value
        kinds = (int,) if self.whole else (int, float)
        if type(value) not in kinds or not self.least <= value <= self.most:
            kind = "a whole number" if self.whole else "a number"
            unit = f" {self.unit}" if self.unit else ""
            raise BadRequest(
                f"{self.name}={value!r} is wrong; it must be {kind} from {self.least:g} to {self.most:g}{unit}"
            )
        return value if self.whole else float(value)


def _bounds() -> dict[str, Bound]:
    found = {}
    for item in fields(Settings):
        first = item.default[0] if isinstance(item.default, tuple) else item.default
        unit, words = item.metadata["unit"], WORDS.get(item.name, ())
        least, most = (0.0, 0.0) if words else RANGES[item.name] if unit != "%" else (0, 100)
        found[item.name] = Bound(
            name=item.name,
            unit=unit,
            about=item.metadata["help"],
            default=item.default,
            whole=isinstance(first, int),
            least=least,
            most=most,
            words=words,
            many=MOST_OF.get(item.name, 0),
        )
    return found


BOUNDS: Mapping[str, Bound] = _bounds()
"""Of each setting of the planner."""


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as Settings takes them; raises BadRequest for what is unknown or out of bounds."""
    unknown = sorted(set(given) - set(BOUNDS))
    if unknown:
        raise BadRequest(f"the planner has no setting {', '.join(unknown)}; `pondstack-planner run --help` lists them")
    return {name: BOUNDS[name].checked(value) for name, value in given.items()}
