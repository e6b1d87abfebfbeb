"""What an operator sets per project of pool memory; it travels to nova-scheduler. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class DefaultPolicy(StrEnum):
    """What servers of flavors without `pond:` specs are treated as: all local, or as with `pond:policy=auto`."""

    NONE = "none"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """None: not set, and decided elsewhere. `max_pool_percent`: of automatic shares, 0 to 100; 0 opts out."""

    default_policy: DefaultPolicy | None = None
    max_pool_percent: int | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is set."""
        return self.default_policy is None and self.max_pool_percent is None

    def to_wire(self) -> dict[str, Any]:
        """Return JSON types only."""
        return asdict(self)

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Build the value; unknown fields, and a policy of a newer sender's, are dropped."""
        policy = data.get("default_policy")
        known = DefaultPolicy(policy) if policy in list(DefaultPolicy) else None
        return cls(known, data.get("max_pool_percent"))


NOTHING_SET = ProjectSettings()
