"""What a decision is made by: algorithms by name, thresholds, budgets. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pondstack.domain.energy import Estimate
from pondstack.domain.errors import BadRequest
from pondstack.domain.plan import Afterwards


@dataclass(frozen=True, slots=True)
class Settings:
    """One decision's. Percentages are of a host's CPUs, unless they say otherwise.

    `overload_percent`: the most that a destination may be loaded afterwards, and the static threshold of overload.
    `safety`: the factor of mad, iqr or local-regression; None: the algorithm's own. `readings`: the least history of a
    host's load for these. `metric_seconds`: the greatest age of a figure. `working_set_percent`: what of a working set
    has to fit locally. `worth_seconds`: a server that is predicted to end within that is not worth a migration.
    `least_awake`: hosts that stay awake at least; `reserve_percent`: what of awake hosts stays free in Placement;
    `most_migrations`, `most_emptied`: of one plan; `most_woken`: of one for servers that found no host.
    `host_watts`: of a host at full load; `idle_percent`, `asleep_percent` of that by `power_profile`, the latter None:
    it has no figure of how hosts sleep here. `step_seconds`: between two readings of a load. `copy_mib_per_second`: how
    fast a live migration is taken to copy.
    """

    underload: str = "static"
    overload: str = "static"
    selection: str = "least-memory"
    placement: str = "best-fit"
    underload_percent: float = 25.0
    overload_percent: float = 80.0
    safety: float | None = None
    readings: int = 10
    metric_seconds: float = 600.0
    working_set_seconds: float = 7200.0
    working_set_percent: float = 30.0
    worth_seconds: float = 3600.0
    least_awake: int = 1
    reserve_percent: float = 0.0
    most_migrations: int = 1000
    most_emptied: int = 100
    most_woken: int = 10
    afterwards: Afterwards = Afterwards.SUSPEND
    power_profile: str = "hp"
    host_watts: float = 250.0
    idle_percent: float = 0.0
    asleep_percent: float | None = None
    step_seconds: float = 60.0
    copy_mib_per_second: float = 200.0

    @property
    def energy(self) -> Estimate:
        """What a host takes."""
        return Estimate.of(self.power_profile, self.host_watts, self.idle_percent, self.asleep_percent)

    @classmethod
    def names(cls) -> set[str]:
        """Return the names of all settings."""
        return {item.name for item in fields(cls)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Settings":
        """Return what a plan keeps; fields of a newer release are dropped. Raises BadRequest."""
        given = {name: value for name, value in record.items() if name in cls.names()}
        for item in fields(cls):
            if item.name in given and not _is_like(given[item.name], item.default):
                raise BadRequest(f"setting {item.name} cannot be {given[item.name]!r}; its default is {item.default}")
        afterwards = given.get("afterwards", Afterwards.SUSPEND)
        if afterwards not in tuple(Afterwards):
            raise BadRequest(f"afterwards is one of {', '.join(Afterwards)}, not {afterwards!r}")
        return cls(**{**given, "afterwards": Afterwards(afterwards)})

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self) | {"afterwards": str(self.afterwards)}


def _is_like(value: Any, default: Any) -> bool:
    """Return whether a value is of the type of a default; None stands for a number that may be missing."""
    if isinstance(default, str):
        return isinstance(value, str)
    if value is None:
        return default is None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not isinstance(default, int) or isinstance(value, int)
