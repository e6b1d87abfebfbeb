"""Hot, warm and cold memory by type of page: what the profiler's looks come to. No effects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pondstack_agent.tiering.pagetypes import HUGETLB, KINDS
from pondstack_agent.tiering.pagetypes import Mapping as Mapped

KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True)
class Heat:
    """KiB in memory: used within the hot window, within the warm one only, within neither."""

    hot: int = 0
    warm: int = 0
    cold: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.hot + self.warm + self.cold

    def __add__(self, other: "Heat") -> "Heat":
        return Heat(self.hot + other.hot, self.warm + other.warm, self.cold + other.cold)


Profile = Mapping[str, Heat]
"""Heat by type of page; what is `hugetlb` was not measured and is in `cold` of no other."""


@dataclass
class Cost:
    """What measuring cost so far: processor time, and the longest time of one look at the process, in seconds."""

    processor_seconds: float = 0.0
    longest_look_seconds: float = 0.0


def between(first: Iterable[Mapped], second: Iterable[Mapped]) -> dict[str, Heat]:
    """Return the heat at the second look. `first` was after the hot window, `second` after the warm one; the bits were
    cleared before both and not between them. Mappings that are gone count for nothing.
    """
    early = {item.start: item for item in first}
    found: dict[str, Heat] = {}
    for item in second:
        if item.kind == HUGETLB:
            continue
        before = early.get(item.start)
        hot = min(before.referenced_kib, item.referenced_kib) if before else 0
        heat = Heat(hot, item.referenced_kib - hot, item.resident_kib - item.referenced_kib)
        found[item.kind] = found.get(item.kind, Heat()) + heat
    return found


def lines(profile: Profile) -> list[str]:
    """Return a table's rows, types that the process has, and their sum."""
    rows = [(kind, profile[kind]) for kind in KINDS if kind in profile]
    rows.append(("all", sum((heat for _, heat in rows), Heat())))
    return [_line(kind, heat) for kind, heat in rows]


def title() -> str:
    """Return the head of the table."""
    sizes = "".join(f"{name:>10}" for name in ("MiB", "hot MiB", "warm MiB", "cold MiB"))
    return f"{'type':<8}{sizes}{'hot %':>8}{'warm %':>8}{'cold %':>8}"


def _line(kind: str, heat: Heat) -> str:
    sizes = "".join(f"{kib / KIB_PER_MIB:>10.1f}" for kib in (heat.total, heat.hot, heat.warm, heat.cold))
    shares = "".join(f"{100 * kib / heat.total if heat.total else 0:>8.1f}" for kib in (heat.hot, heat.warm, heat.cold))
    return f"{kind:<8}{sizes}{shares}"
