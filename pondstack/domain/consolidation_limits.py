"""What an operator sets of consolidation at run time: how much of the cloud stays awake and free. Pure."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pondstack.domain.errors import BadRequest

MOST_HOSTS = 1000000
"""Of [consolidation] least_awake too."""


@dataclass(frozen=True, slots=True)
class ConsolidationLimits:
    """In place of the options of the same names in [consolidation]; None: the option holds.

    `reserve_percent`: of the VCPUs and of the memory that may be claimed of awake hosts, 0 to 100; `least_awake`: how
    many hosts.
    """

    reserve_percent: float | None = None
    least_awake: int | None = None

    @property
    def given(self) -> dict[str, Any]:
        """What is set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def changed(self, changes: Mapping[str, Any]) -> "ConsolidationLimits":
        """Return them with what `changes` names, None: unset. Raises BadRequest."""
        unknown = sorted(set(changes) - set(asdict(self)))
        if unknown or not changes:
            wrong = ", ".join(unknown) or "nothing"
            raise BadRequest(f"{wrong} cannot be set for consolidation; set {' or '.join(asdict(self))}")
        percent, hosts = changes.get("reserve_percent"), changes.get("least_awake")
        if percent is not None and not _is_percent(percent):
            raise BadRequest(f"reserve_percent={percent!r} is wrong; it must be a number from 0 to 100, or null")
        if hosts is not None and not (type(hosts) is int and 0 <= hosts <= MOST_HOSTS):
            raise BadRequest(f"least_awake={hosts!r} is wrong; it must be an integer from 0 to {MOST_HOSTS}, or null")
        return replace(self, **changes)


def _is_percent(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and 0 <= value <= 100


NOTHING_SET = ConsolidationLimits()
