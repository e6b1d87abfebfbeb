"""Which pages are misplaced, when to look, and what is left to do; pure. Counts are pages of 4 KiB."""

from collections.abc import Iterable
from dataclasses import dataclass

from pondstack_agent.host.numa import PAGE_KIB, Region

ATTEMPTS = 5
"""Looks after memory of a node went offline, while pages stay that should not."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of misplaced pages. `reasons`: why some stay, by guest."""

    moved: int = 0
    left: int = 0
    reasons: tuple[str, ...] = ()

    def __add__(self, other: "Outcome") -> "Outcome":
        """Return both as one."""
        return Outcome(self.moved + other.moved, self.left + other.left, self.reasons + other.reasons)


@dataclass(frozen=True, slots=True)
class Look:
    """A look at a node: how often its memory had gone offline, the how-manieth since then, when, and what was found."""

    evacuations: int
    attempt: int
    at: float
    settled: bool


def misplaced(regions: Iterable[Region], node: int) -> list[Region]:
    """Return the mappings of a guest's pool backends on a node that have pages elsewhere.

    A backend's memory policy names its node and no other, and none of QEMU's own memory has such a policy. Libraries
    of a process whose policy is for all of it are not its memory.
    """
    backends = (region for region in regions if region.writable and region.policy_nodes == {node})
    return [region for region in backends if _elsewhere(region, node)]


def count(regions: Iterable[Region], node: int) -> int:
    """Return how many pages of pool backends on a node are elsewhere."""
    return sum(_elsewhere(region, node) for region in misplaced(regions, node))


def due(look: Look | None, evacuations: int | None, now: float, after_seconds: float) -> bool:
    """Tell whether to look at a node: memory of it has gone offline (not while it still goes), or pages stayed."""
    if evacuations is None:
        return False
    if look is None or look.evacuations != evacuations:
        return True
    return not look.settled and look.attempt < ATTEMPTS and now - look.at >= after_seconds


def looked(before: Look | None, evacuations: int, now: float, *, left: int, kept: int) -> Look:
    """Return the look that found `left` pages elsewhere. The kernel keeps `kept` of each node for itself, so some are
    always elsewhere when guests have touched all of theirs.
    """
    again = before is not None and before.evacuations == evacuations
    return Look(evacuations, before.attempt + 1 if again and before else 1, now, left <= kept)


def _elsewhere(region: Region, node: int) -> int:
    return sum(pages for other, pages in region.pages.items() if other != node) * region.page_kib // PAGE_KIB
