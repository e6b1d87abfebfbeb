"""Compares what a rack placed with what the planner places, server by server, and explains what differs.

The planner replays all by itself, so that one server that goes elsewhere moves many after it. So each decision is also
looked at alone, with the rack's servers where the rack had them: if the planner decides as the rack did then, a
difference follows from earlier ones; else bench.agreement.reasons accounts for it, or nothing does.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.agreement.engine import Engine, Place
from bench.agreement.log import Log, Placement
from bench.agreement.reasons import Reason, Why, reasons
from bench.agreement.situation import Situation


@dataclass(frozen=True, slots=True)
class Verdict:
    """One server: what the rack did, what the planner did, whether it does alike when asked alone, and why not."""

    item: Placement
    planner: Place
    alone: Place
    reasons: Sequence[Reason]

    @property
    def why(self) -> tuple[Why, ...]:
        """The kinds of its reasons."""
        return tuple(reason.why for reason in self.reasons)

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
    """Return the hosts in the order in which nova-scheduler had them first; those that it never told of are last."""
    told = max((item.hosts for item in log.decisions.values()), key=len, default=())
    known = [host.name for host in log.hosts]
    return [name for name in told if name in known] + [name for name in known if name not in told]


def _verdict(engine: Engine, log: Log, number: int, item: Placement, planner: Place) -> Verdict:
    situation = Situation(log, item, engine.slice_mib)
    alone = engine.decide(number, situation.state())
    return Verdict(item, planner, alone, _reasons(engine, log, number, situation, planner, alone))


def _reasons(
    engine: Engine, log: Log, number: int, situation: Situation, planner: Place, alone: Place
) -> Sequence[Reason]:
    item = situation.item
    rack = Place(item.host, item.pool_mib)
    if planner == rack:
        return [Reason(Why.SAME)]
    if item.reason and not item.rejected:
        return [Reason(Why.UNKNOWN, f"the rack failed it: {item.reason}")]
    if alone == rack:
        return [Reason(Why.EARLIER)]
    return reasons(engine, number, situation, alone, log.decisions.get(item.server))


def lines(log: Log, verdicts: Sequence[Verdict]) -> list[str]:
    """Return the report: each difference with its reason, then the figures."""
    found = [
        f"  #{item.item.number:<4d} {_differs(item)}: {'; '.join(map(str, item.reasons))}"
        for item in verdicts
        if item.why != (Why.SAME,)
    ]
    total = len(verdicts)
    alone = [item for item in verdicts if item.alone == item.rack]
    splits = sum(item.alone.pool_mib == item.rack.pool_mib for item in verdicts)
    found += [
        f"compared   {total} requests ({log.about}) with the planner's engine",
        f"placed     {sum(bool(item.planner.host) for item in verdicts)} by the planner, "
        f"{sum(bool(item.item.host) for item in verdicts)} by the rack",
        f"splits     {sum(item.same_split for item in verdicts)} of {total} the same; with pool memory: "
        f"{sum(item.planner.pool_mib > 0 for item in verdicts)} by the planner, "
        f"{sum(item.rack.pool_mib > 0 for item in verdicts)} by the rack",
        f"hosts      {sum(item.planner.host == item.rack.host for item in verdicts)} of {total} the same",
        f"alone      {splits} of {total} splits, {len(alone)} of {total} splits and hosts are the same where each "
        "decision is made with the rack's servers where they were",
    ]
    for why, count in Counter(item.why for item in verdicts if item.why != (Why.SAME,)).most_common():
        found.append(f"  {count:4d}  {'; and '.join(why)}")
    return found


def report(log: Log) -> int:
    """Print the comparison; 0 when each difference has a reason."""
    verdicts = compare(log)
    print("\n".join(lines(log, verdicts)))
    unknown = sum(Why.UNKNOWN in item.why for item in verdicts)
    print(f"FAILED: {unknown} differences have no reason" if unknown else "OK: each difference has its reason")
    return 1 if unknown else 0


def _differs(verdict: Verdict) -> str:
    return f"rack {_shown(verdict.rack)}, planner {_shown(verdict.planner)}"


def _shown(place: Place) -> str:
    return f"{place.host} with {place.pool_mib} MiB of a pool" if place.host else "nowhere"
