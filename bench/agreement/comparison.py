"""Compares what a rack placed with what the planner places, server by server, and explains what differs.

The planner replays all by itself, so that one server that goes elsewhere moves many after it. So each decision is also
looked at alone, with the rack's servers where the rack had them: if the planner decides as the rack did then, a
difference follows from earlier ones; else it is explained by a state that the scheduler can have seen, or not at all.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from bench.agreement.engine import Engine, Place
from bench.agreement.log import Log, Placement
from bench.agreement.overlap import Overlap, Phase, Supposition

SHOWN = 3
"""Other servers that a reason names."""


class Why(StrEnum):
    """The kinds of reasons."""

    SAME = "the same"
    EARLIER = "follows from earlier differences: with the rack's servers where they were, the planner decides alike"
    EQUAL = "hosts of equal weight: Nova takes the first of its set of hosts, whose order is open"
    BUILDING = "hosts that build servers weigh less (Nova's IoOpsWeigher); the planner has no builds that last"
    ORDER = "requests in flight at the same time: another order of them"
    LEAVING = "a departure under way at the same time: counted by one, not by the other"
    RETURN = "slices on their way back: released asynchronously"
    BUFFER = "the free buffer had another size by then"
    UNKNOWN = "UNEXPLAINED"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One server: what the rack did, what the planner did, whether it does alike when asked alone, and why not."""

    item: Placement
    planner: Place
    alone: Place
    why: Why
    detail: str = ""

    @property
    def rack(self) -> Place:
        """Where the rack put it."""
        return Place(self.item.host, self.item.pool_mib)

    @property
    def same_split(self) -> bool:
        """Whether both placed it, or neither, with the same split."""
        return (bool(self.planner.host), self.planner.pool_mib) == (bool(self.rack.host), self.rack.pool_mib)


def compare(log: Log) -> list[Verdict]:
    """Return a verdict on each server of a log that reached an end."""
    engine = Engine(log, order_of_equals(log))
    return [
        _verdict(engine, log, number, item, planner)
        for number, (item, planner) in enumerate(zip(log.placements, engine.run(), strict=True))
    ]


def order_of_equals(log: Log) -> list[str]:
    """Return the hosts in the order in which the rack's scheduler takes equal ones, by which won and over whom."""
    names = [host.name for host in log.hosts]
    engine = Engine(log, names)
    lost: Counter[tuple[str, str]] = Counter()
    for number, item in enumerate(log.placements):
        if not item.host:
            continue
        first = next(Overlap(log, item, engine.slice_mib).suppositions())
        _, best = engine.decide(number, first.state)
        lost.update((item.host, other) for other in best - {item.host} if item.host in best)
    left, order = list(names), []
    while left:
        winner = min(left, key=lambda name: sum(lost[other, name] - lost[name, other] for other in left))
        order.append(winner)
        left.remove(winner)
    return order


def _verdict(engine: Engine, log: Log, number: int, item: Placement, planner: Place) -> Verdict:
    rack = Place(item.host, item.pool_mib)
    overlap = Overlap(log, item, engine.slice_mib)
    suppositions = overlap.suppositions()
    first = next(suppositions)
    alone, best = engine.decide(number, first.state)
    if planner == rack:
        return Verdict(item, planner, alone, Why.SAME)
    if item.reason and not item.rejected:
        return Verdict(item, planner, alone, Why.UNKNOWN, f"the rack failed it: {item.reason}")
    if alone == rack:
        return Verdict(item, planner, alone, Why.EARLIER)
    if _among(rack, alone, best):
        return Verdict(item, planner, alone, Why.EQUAL, f"{', '.join(sorted(best))} are equal")
    for supposition in suppositions:
        place, best = engine.decide(number, supposition.state)
        if _among(rack, place, best):
            return Verdict(item, planner, alone, _why(supposition, rack, alone), _detail(supposition))
    doubts = f"{len(overlap.doubts)} servers were under way at the same time"
    return Verdict(item, planner, alone, Why.UNKNOWN, f"{doubts}, and no state tried of them places it so")


def _among(rack: Place, place: Place, best: frozenset[str]) -> bool:
    return place == rack or (place.pool_mib == rack.pool_mib and rack.host in best)


def _why(supposition: Supposition, rack: Place, alone: Place) -> Why:
    """Return the kind of a state that explains a difference: of splits by what pools had, else by what hosts had."""
    phases = {phase for _, phase in supposition.changed}
    if rack.pool_mib != alone.pool_mib:
        if Phase.RETURNING in phases:
            return Why.RETURN
        if supposition.buffer is not None:
            return Why.BUFFER
    if any(item.number in supposition.leaving for item, _ in supposition.changed):
        return Why.LEAVING
    return Why.BUILDING if Phase.BUILDING in phases else Why.ORDER


def _detail(supposition: Supposition) -> str:
    named = [f"#{item.number} on {item.host} {phase}" for item, phase in supposition.changed]
    text = ", ".join(named[:SHOWN]) + (f" and {len(named) - SHOWN} more" if len(named) > SHOWN else "")
    buffer = "" if supposition.buffer is None else f"buffer of {supposition.buffer} slices"
    return "; ".join(part for part in (text, buffer) if part)


def lines(log: Log, verdicts: Sequence[Verdict]) -> list[str]:
    """Return the report: each difference with its reason, then the figures."""
    found = [
        f"  #{item.item.number:<4d} {_differs(item)}: {item.why}" + (f" ({item.detail})" if item.detail else "")
        for item in verdicts
        if item.why is not Why.SAME
    ]
    total = len(verdicts)
    alone = [item for item in verdicts if item.alone == item.rack]
    splits = sum(item.alone.pool_mib == item.rack.pool_mib for item in verdicts)
    found += [
        f"compared   {total} requests ({log.about}) with the planner's engine",
        f"placed     {sum(bool(item.planner.host) for item in verdicts)} by the planner, "
        f"{sum(bool(item.item.host) for item in verdicts)} by the rack",
        f"splits     {sum(item.same_split for item in verdicts)} of {total} the same",
        f"hosts      {sum(item.planner.host == item.rack.host for item in verdicts)} of {total} the same",
        f"alone      {splits} of {total} splits, {len(alone)} of {total} splits and hosts are the same where each "
        "decision is made with the rack's servers where they were",
    ]
    for why, count in Counter(item.why for item in verdicts if item.why is not Why.SAME).most_common():
        found.append(f"  {count:4d}  {why}")
    return found


def report(log: Log) -> int:
    """Print the comparison; 0 when each difference has a reason."""
    verdicts = compare(log)
    print("\n".join(lines(log, verdicts)))
    unknown = sum(item.why is Why.UNKNOWN for item in verdicts)
    print(f"FAILED: {unknown} differences have no reason" if unknown else "OK: each difference has its reason")
    return 1 if unknown else 0


def _differs(verdict: Verdict) -> str:
    return f"rack {_shown(verdict.rack)}, planner {_shown(verdict.planner)}"


def _shown(place: Place) -> str:
    return f"{place.host} with {place.pool_mib} MiB of a pool" if place.host else "nowhere"
