"""What is still free on the hosts that may take servers, while a plan is made. Pure."""

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from pondstack.consolidation.decision.demand import Demand
from pondstack.consolidation.decision.snapshot import MEMORY


class Totals(NamedTuple):
    """What a host has in all: CPUs, MiB, and MiB that Placement lets be claimed."""

    cpus: float
    mib: float
    claimable_mib: float

    @classmethod
    def largest(cls, items: Iterable["Totals"]) -> "Totals":
        """Return the most of each that any host has."""
        columns = list(zip(*items, strict=True))
        return cls(*map(max, columns)) if columns else cls(0.0, 0.0, 0.0)

    def least_share(self, cpus: float, mib: float, claimable_mib: float) -> float:
        """Return the least of three amounts, each as a share of what the host has."""
        amounts = (cpus, mib, claimable_mib)
        return min((amount / total if total > 0 else 0.0) for amount, total in zip(amounts, self, strict=True))

    def greatest_share(self, cpus: float, mib: float, claimable_mib: float) -> float:
        """Return the greatest of them."""
        amounts = (cpus, mib, claimable_mib)
        return max((amount / total if total > 0 else 0.0) for amount, total in zip(amounts, self, strict=True))


@dataclass(slots=True)
class Room:
    """What is free of one host: CPUs up to its threshold, MiB of its own memory, amounts in Placement by class.

    `exit_seconds`: when the last of its servers is predicted to have ended. `taken`: servers that it is to get.
    """

    totals: Totals
    cpus: float
    mib: float
    free: dict[str, int]
    exit_seconds: float = 0.0
    taken: int = 0

    @property
    def share(self) -> float:
        """What is free of what is scarcest, as a share."""
        return self.totals.least_share(self.cpus, self.mib, self.free.get(MEMORY, 0))

    def fits(self, demand: Demand) -> bool:
        """Return whether a server fits: by CPU, by memory, and by each class of its claim in Placement."""
        if demand.cpus > self.cpus or demand.mib > self.mib:
            return False
        free = self.free
        return all(free.get(name, 0) >= amount for name, amount in demand.claim)

    def change(self, demand: Demand, sign: int) -> None:
        """Take a server in (-1), or let it out (+1)."""
        self.cpus += sign * demand.cpus
        self.mib += sign * demand.mib
        for name, amount in demand.claim:
            self.free[name] += sign * amount
        self.taken -= sign


Key = tuple[float, str]
Search = tuple[tuple[tuple[str, int], ...], frozenset[str] | None]
"""A claim, and the hosts among which it was looked for room."""


class Rooms:
    """Rooms of hosts, ordered by the share that is free of what is scarcest.

    A search begins at hosts that have of everything the greatest share that the server needs of anything, where of
    equal hosts all fit, and only then looks at tighter ones. Shares are of the `largest` host.
    """

    def __init__(self, largest: Totals) -> None:
        self._largest = largest
        self._rooms: dict[str, Room] = {}
        self._order: list[Key] = []
        self._failed: dict[Search, tuple[float, float]] = {}

    def __getitem__(self, name: str) -> Room:
        return self._rooms[name]

    def add(self, name: str, room: Room) -> None:
        """Have a host take servers."""
        self._rooms[name] = room
        insort(self._order, (room.share, name))
        self._failed.clear()

    def withdraw(self, name: str) -> Room | None:
        """Have a host take none any more; returns its room, None: it took none before."""
        room = self._rooms.pop(name, None)
        if room is not None:
            self._unlist(name, room)
        return room

    def fitting(self, demand: Demand, allowed: Container[str] | None, *, tightest: bool = True) -> Iterator[str]:
        """Yield the hosts on which a server fits, the tightest first, or last; `allowed` None: any.

        Rooms only shrink in between: what did not fit anywhere is not looked for again.
        """
        search = (demand.claim, allowed) if allowed is None or isinstance(allowed, frozenset) else None
        if search is not None and self._is_hopeless(demand, search):
            return
        found = False
        begin = bisect_left(self._order, (self._need(demand), ""))
        places = chain(range(begin, len(self._order)), range(begin - 1, -1, -1))
        for place in places if tightest else range(len(self._order) - 1, -1, -1):
            name = self._order[place][1]
            if (allowed is None or name in allowed) and self._rooms[name].fits(demand):
                found = True
                yield name
        if not found and search is not None:
            self._failed[search] = (demand.cpus, demand.mib)

    def _need(self, demand: Demand) -> float:
        claimed = dict(demand.claim).get(MEMORY)
        return 0.0 if claimed is None else self._largest.greatest_share(demand.cpus, demand.mib, claimed)

    def _is_hopeless(self, demand: Demand, search: Search) -> bool:
        failed = self._failed.get(search)
        return failed is not None and demand.cpus >= failed[0] and demand.mib >= failed[1]

    def take(self, name: str, demand: Demand) -> None:
        """Give a host a server."""
        self._change(name, demand, -1)

    def undo(self, placed: Sequence[tuple[Demand, str]]) -> None:
        """Take servers back from the hosts that they were given to."""
        for demand, name in placed:
            self._change(name, demand, 1)
        if placed:
            self._failed.clear()

    def _change(self, name: str, demand: Demand, sign: int) -> None:
        room = self._rooms[name]
        self._unlist(name, room)
        room.change(demand, sign)
        insort(self._order, (room.share, name))

    def _unlist(self, name: str, room: Room) -> None:
        del self._order[bisect_left(self._order, (room.share, name))]
