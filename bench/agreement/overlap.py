"""What was under way while the rack placed a server, and so may or may not have counted: the states it can have seen.

A log has when a server was asked for and when it was seen started. nova-scheduler decided in between, on what it knew
then: of servers that were asked for, started, told to leave or gone in that time, it cannot be told from outside.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bench.agreement.engine import State
from bench.agreement.log import Log, Look, Placement, first_looks

LATE_SECONDS = 2.0
"""The schedulers' view of pools is as old as that ([pondstack] snapshot_interval_seconds), or a host's own report."""
MOST_TRIES = 4000


class Phase(StrEnum):
    """What a scheduler may have seen of another server."""

    ABSENT = "not placed yet"
    BUILDING = "being built"
    THERE = "there"
    RETURNING = "gone, its slices on their way back"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Doubt:
    """Another server with the phases that it can have had; the first is what the planner takes it for."""

    item: Placement
    phases: tuple[Phase, ...]


Seen = Mapping[int, Phase]
"""Other servers in doubt by their number, as one supposition has them."""


@dataclass(frozen=True, slots=True)
class Supposition:
    """One state that the scheduler can have seen, and how it differs from the planner's."""

    state: State
    changed: Sequence[tuple[Placement, Phase]]
    leaving: frozenset[int]
    """Numbers of the changed ones that were on their way out."""
    buffer: int | None


class Overlap:
    """The states that one decision can have seen."""

    def __init__(self, log: Log, item: Placement, slice_mib: int) -> None:
        self._slice_mib = slice_mib
        self._pool = {host.name: host.pool for host in log.hosts}
        self._sure: list[tuple[Placement, Phase]] = []
        self.doubts: list[Doubt] = []
        back = max((look.give_back_seconds for look in log.looks), default=0.0) + LATE_SECONDS
        for other in log.placements:
            phases = _phases(other, item, back) if other is not item and other.host else (Phase.ABSENT,)
            if len(phases) > 1:
                self.doubts.append(Doubt(other, phases))
            elif phases[0] is Phase.THERE:
                self._sure.append((other, Phase.THERE))
        self.doubts.sort(key=lambda doubt: (Phase.BUILDING not in doubt.phases, -doubt.item.asked))
        known = {look.buffer for look in first_looks(log.looks).values()}
        self._buffers = sorted({look.buffer for look in _around(log.looks, item)} - known)

    def suppositions(self) -> Iterator[Supposition]:
        """Yield states: the planner's, then with all being built that may be, then with ever more changes."""
        plain: Seen = {doubt.item.number: doubt.phases[0] for doubt in self.doubts}
        built = plain | {doubt.item.number: Phase.BUILDING for doubt in self.doubts if Phase.BUILDING in doubt.phases}
        yield self._supposed(plain, None)
        bases = [(base, buffer) for buffer in (None, *self._buffers) for base in (plain, built)][1:]
        for base, buffer in bases:
            yield self._supposed(base, buffer)
        changes = [(doubt.item.number, phase) for doubt in self.doubts for phase in doubt.phases]
        many = (
            (base, buffer, some)
            for count in range(1, len(self.doubts) + 1)
            for some in itertools.combinations(changes, count)
            if len({number for number, _ in some}) == count
            for base, buffer in [(plain, None), *bases]
        )
        for base, buffer, some in itertools.islice(many, MOST_TRIES):
            yield self._supposed(base | dict(some), buffer)

    def _supposed(self, seen: Seen, buffer: int | None) -> Supposition:
        state = State(buffer={} if buffer is None else dict.fromkeys(self._pool.values(), buffer))
        for item, phase in self._sure:
            self._count(state, item, phase)
        changed, leaving = [], set()
        for doubt in self.doubts:
            phase = seen[doubt.item.number]
            self._count(state, doubt.item, phase)
            if phase is not doubt.phases[0]:
                changed.append((doubt.item, phase))
                leaving |= {doubt.item.number} if Phase.GONE in doubt.phases else set()
        return Supposition(state, changed, frozenset(leaving), buffer)

    def _count(self, state: State, item: Placement, phase: Phase) -> None:
        pool, slices = self._pool[item.host], item.pool_mib // self._slice_mib
        if phase is Phase.RETURNING:
            _add(state.returning, pool, slices)
        if phase not in (Phase.THERE, Phase.BUILDING):
            return
        _add(state.cpu, item.host, item.vcpus)
        _add(state.local_mib, item.host, item.memory_mib - item.pool_mib)
        _add(state.pooled_mib, item.host, item.pool_mib)
        _add(state.held, pool, slices)
        if phase is Phase.BUILDING:
            _add(state.building, item.host, 1)


def _phases(other: Placement, item: Placement, back_seconds: float) -> tuple[Phase, ...]:
    """Return the phases that `other` can have had while `item` was placed; the first is the planner's."""
    begun, ended = item.asked, item.seen
    if other.asked > ended:
        return (Phase.ABSENT,)
    found: list[Phase] = []
    if other.seen + LATE_SECONDS >= begun:
        first = Phase.THERE if other.asked <= begun else Phase.ABSENT
        found = [first, *(phase for phase in (Phase.ABSENT, Phase.BUILDING, Phase.THERE) if phase is not first)]
    if other.leaving is None or other.leaving > ended:
        return tuple(found) or (Phase.THERE,)
    left = Phase.GONE if other.leaving <= begun else Phase.THERE
    if other.gone is None or other.gone + LATE_SECONDS >= begun:
        found += [left, Phase.THERE, Phase.GONE]
    if other.pool_mib and (other.gone is None or other.gone + back_seconds >= begun):
        found += [left, Phase.RETURNING, Phase.GONE]
    if left is Phase.GONE and found:
        found.insert(0, left)
    return tuple(dict.fromkeys(found)) or (Phase.GONE,)


def _around(looks: Sequence[Look], item: Placement) -> Iterator[Look]:
    """Yield the looks at pools from before a server was asked for until it was seen."""
    before = [look for look in looks if look.at < item.asked - LATE_SECONDS]
    yield from before[-1:]
    yield from (look for look in looks if item.asked - LATE_SECONDS <= look.at <= item.seen)


def _add(counts: dict[str, int], name: str, number: int) -> None:
    counts[name] = counts.get(name, 0) + number
