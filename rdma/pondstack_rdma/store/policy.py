"""Decisions of the borrower, pure: which lender gets a page, which pages move next, when to try again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

NOWHERE = -1
"""Of a page that is in the mirror only, and shall be placed."""

NEVER = -2
"""Of a page that was never written: zeros."""

LOST = -3
"""Of a page whose content nobody has."""

_SLOT_BITS = 32


@dataclass(frozen=True, slots=True)
class Load:
    """What one lender has of this VM, and has room for, in pages."""

    used: int
    free: int


def choose_lender(loads: Mapping[str, Load]) -> str | None:
    """Return the lender that has least of us, of those with room: one failure harms least (Zombieland 4.4).

    Among equals the one with most room, then by name, so that a choice can be repeated.
    """
    with_room = [(load.used, -load.free, name) for name, load in loads.items() if load.free > 0]
    return min(with_room)[2] if with_room else None


def pack_place(lease: int, slot: int) -> int:
    """Return a place as one number."""
    return lease << _SLOT_BITS | slot


def lease_of(place: int) -> int:
    """Return the number of the lease of a place."""
    return place >> _SLOT_BITS


def slot_of(place: int) -> int:
    """Return the slot of a place."""
    return place & (1 << _SLOT_BITS) - 1


def choose_moves(
    places: Sequence[int], leaving: Collection[int], begin: int, look: int, most: int
) -> tuple[list[int], int]:
    """Return which pages to place anew next, and where to go on: at most `most`, of `look` pages from `begin` on.

    Those that are NOWHERE, or on a lease that is `leaving`. In turn, so that none waits for ever.
    """
    found: list[int] = []
    page = begin if begin < len(places) else 0
    for _ in range(min(look, len(places))):
        if len(found) >= most:
            break
        place = places[page]
        if place == NOWHERE or (place >= 0 and lease_of(place) in leaving):
            found.append(page)
        page = page + 1 if page + 1 < len(places) else 0
    return found, page


def backoff_seconds(tries: int, first: float, most: float, chance: float) -> float:
    """Return how long to wait after so many vain tries: doubled each time, at most `most`, spread by `chance` (0 to 1).

    Spread, so that all borrowers of a lender that comes back do not come at once.
    """
    return min(first * 2.0 ** min(tries, 30), most) * (0.5 + chance / 2)


@dataclass(slots=True)
class Allowance:
    """A bounded rate: `per_second` pages on average, `burst` at once."""

    per_second: float
    burst: float
    left: float = 0.0
    at: float = 0.0

    def take(self, now: float) -> int:
        """Return how many pages may be moved now."""
        self.left = min(self.burst, self.left + max(now - self.at, 0.0) * self.per_second)
        self.at = now
        return int(self.left)

    def spend(self, pages: int) -> None:
        """Count pages that were moved."""
        self.left -= pages
