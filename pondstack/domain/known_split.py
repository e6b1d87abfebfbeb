"""What is known of an existing instance's split, so that its moves keep it; it travels to nova-scheduler. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from pondstack.domain.sizing import CORRECTED, Split

_SPLIT = [item.name for item in fields(Split)]


@dataclass(frozen=True, slots=True)
class Present:
    """The pool memory that an instance of `guest_mib` has now, by the ledger."""

    guest_mib: int
    pool_mib: int


@dataclass(frozen=True, slots=True)
class KnownSplit:
    """One instance: what it has, and what it was placed with last under which flavor. Neither: it is forgotten.

    `renewed_mib`: pool memory that it gets when it is moved cold, None: what it has.
    """

    instance_uuid: str
    present: Present | None = None
    flavor_key: str = ""
    remembered: Split | None = None
    renewed_mib: int | None = None

    @property
    def gone(self) -> bool:
        """Whether nothing is known any more."""
        return self.present is None and self.remembered is None

    @property
    def corrected(self) -> bool:
        """Whether a mitigation has taken the instance's pool memory away for good, or is about to."""
        return self.remembered is not None and self.remembered.source == CORRECTED

    def to_wire(self) -> dict[str, Any]:
        """Return JSON types only."""
        return asdict(self)

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Build the value; unknown fields (a newer sender's) are dropped."""
        present, remembered = data.get("present"), data.get("remembered")
        return cls(
            data["instance_uuid"],
            None if present is None else Present(present["guest_mib"], present["pool_mib"]),
            data.get("flavor_key", ""),
            None if remembered is None else Split(**{name: remembered[name] for name in _SPLIT if name in remembered}),
            data.get("renewed_mib"),
        )
