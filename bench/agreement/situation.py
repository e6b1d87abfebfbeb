"""How the rack stood when it was asked for a server: its servers where they were, and which of them were in motion."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.agreement.engine import State
from bench.agreement.log import Log, Look, Placement, first_looks

LATE_SECONDS = 2.0
"""The scheduler's view of pools is as old as that at most ([pondstack] snapshot_interval_seconds), or a look at it."""
REPORT_SECONDS = 60.0
"""Nova's periodic report of a host ([DEFAULT] update_resources_interval)."""
LATEST = 12
"""Servers of one host whose counting is in question: those that came or went last."""
MOST_AT_ONCE = 3
"""Of these, so many beside those that Nova's view of the host is older than."""


@dataclass(frozen=True, slots=True)
class Miscount:
    """A server that Nova had counted otherwise than it was, so that a host had more, or less, free."""

    item: Placement
    how: str
    vcpus: int
    local_mib: int

    def __str__(self) -> str:
        return f"#{self.item.number} {self.how}"


class Situation:
    """One request among the others of its log."""

    def __init__(self, log: Log, item: Placement, slice_mib: int) -> None:
        self._log, self.item, self._slice_mib = log, item, slice_mib
        self._pool = {host.name: host.pool for host in log.hosts}

    def state(self) -> State:
        """Return what those have that were asked for before and not told to leave."""
        state = State()
        for other in self._log.placements:
            if other is self.item or not self._present(other):
                continue
            _add(state.cpu, other.host, other.vcpus)
            _add(state.local_mib, other.host, other.memory_mib - other.pool_mib)
            _add(state.pooled_mib, other.host, other.pool_mib)
            _add(state.held, self._pool[other.host], other.pool_mib // self._slice_mib)
        return state

    def in_motion(self, other: Placement) -> bool:
        """Say whether another server was being built or deleted while this one was."""
        building = other.asked <= self.item.seen and other.seen >= self.item.asked
        gone = other.gone if other.gone is not None else self.item.asked
        deleting = other.leaving is not None and other.leaving <= self.item.seen and gone >= self.item.asked
        return building or deleting

    def most_builds(self, host: str) -> int:
        """Return how many builds Nova can have counted on a host: from its choice until the host's next report."""
        since = self.item.asked - REPORT_SECONDS
        others = (one for one in self._log.placements if one is not self.item and one.host == host)
        return sum(one.asked <= self.item.seen and one.seen >= since for one in others)

    def pools(self) -> Iterator[tuple[Look, State]]:
        """Yield looks at pools at about that time, each with the state in which the pool is as it was seen."""
        first, begun, ended = first_looks(self._log.looks), self.item.asked - LATE_SECONDS, self.item.seen
        before = [look for look in self._log.looks if look.at < begun]
        for look in [*before[-1:], *(look for look in self._log.looks if begun <= look.at <= ended)]:
            state, pool = self.state(), look.pool
            held = first[pool].free - look.free - look.returning
            returning, buffer = {pool: look.returning}, {pool: look.buffer}
            yield look, replace(state, held={**state.held, pool: held}, returning=returning, buffer=buffer)

    def miscounts(self, host: str, vcpus: float, local_mib: float) -> Sequence[Miscount] | None:
        """Return the servers that, counted otherwise, give a host so much more free; None where none do."""
        others = [one for one in self._log.placements if one.host == host and one is not self.item]
        others = [one for one in others if one.asked <= self.item.seen]
        latest = sorted(others, key=self._changed, reverse=True)[:LATEST]
        possible = [list(self._miscounts(one)) for one in latest]
        # A view from before some came or went has none of these as they are now.
        before = [number for number, one in enumerate(latest) if one.asked <= self.item.asked]
        for late in range(len(before) + 1):
            whole = [possible[number][0] for number in before[:late]]
            beside = [item for number, item in enumerate(possible) if number not in before[:late]]
            for count in range(MOST_AT_ONCE + 1):
                if found := _adding(beside, whole, count, vcpus, local_mib):
                    return found
        return None

    def _changed(self, other: Placement) -> float:
        """Return when another server came or went last, as far as this one can have met it."""
        moments = (other.asked, other.leaving)
        return max(moment for moment in moments if moment is not None and moment <= self.item.seen)

    def _miscounts(self, one: Placement) -> Iterator[Miscount]:
        sign, words = (1, "not counted yet") if self._present(one) else (-1, "still counted")
        yield Miscount(one, words, sign * one.vcpus, sign * (one.memory_mib - one.pool_mib))
        if one.pool_mib:
            yield Miscount(one, f"{words} but for its pool memory", sign * one.vcpus, sign * one.memory_mib)
            yield Miscount(one, f"as for its pool memory {words}", 0, -sign * one.pool_mib)

    def _present(self, other: Placement) -> bool:
        begun = self.item.asked
        return bool(other.host) and other.asked <= begun and (other.leaving is None or other.leaving > begun)


def _adding(
    possible: Sequence[Sequence[Miscount]], whole: Sequence[Miscount], count: int, vcpus: float, local_mib: float
) -> Sequence[Miscount] | None:
    """Return `whole` and so many more, each of another server, that are what a host had more free; None: none do."""
    for servers in itertools.combinations(possible, count):
        for more in itertools.product(*servers):
            some = [*whole, *more]
            if (sum(one.vcpus for one in some), sum(one.local_mib for one in some)) == (vcpus, local_mib):
                return some
    return None


def _add(counts: dict[str, int], name: str, number: int) -> None:
    counts[name] = counts.get(name, 0) + number
