"""Why Nova chose another host than the planner does with the rack's servers where they were: found by computing.

nova-scheduler has told what it weighed (bench.agreement.decision). What differs from the planner's own factors is put
into the planner's decision, as few factors as make it Nova's; each of them must be accounted for by something that the
log has besides: builds, servers in motion, what was seen of the pool.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bench.agreement.decision import CPU, IO_OPS, POND, RAM, Decision
from bench.agreement.engine import EQUAL, Engine, Factors, Place, best
from bench.agreement.situation import Situation

KNOWN = frozenset({CPU, RAM, POND, IO_OPS})
SHOWN = 3
"""Servers or hosts that a reason names."""


class Why(StrEnum):
    """The kinds of reasons."""

    SAME = "the same"
    EARLIER = "follows from earlier differences: with the rack's servers where they were, the planner decides alike"
    EQUAL = "hosts of equal weight: Nova takes the first of its set of hosts, whose order is open"
    BUILDS = "builds that Nova counts on hosts (IoOpsWeigher); the planner has no builds that last"
    MOTION = "servers that came or went at the same time: counted by one, not by the other"
    LATE = "servers that came or went before: Nova's view of a host is as old as the last report that it took"
    POOL = "the pool as it was seen then: slices on their way back, or a buffer of another size"
    OTHER = "another weigher of Nova's, which the planner has not"
    UNKNOWN = "UNEXPLAINED"


@dataclass(frozen=True, slots=True)
class Reason:
    """A kind with its detail."""

    why: Why
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.why} ({self.detail})" if self.detail else str(self.why)


Change = Callable[[Factors], Factors]


def reasons(engine: Engine, number: int, situation: Situation, alone: Place, decision: Decision | None) -> list[Reason]:
    """Return why a rack's place is not the one that the planner, asked alone, gives: of its split, then of its host."""
    place = Place(situation.item.host, situation.item.pool_mib)
    found: list[Reason] = []
    if (place.pool_mib, bool(place.host)) != (alone.pool_mib, bool(alone.host)):
        found.append(_split(engine, number, situation, place))
        alone = engine.at(number, place.pool_mib, situation.state())
    if place.host in ("", alone.host) or any(reason.why is Why.UNKNOWN for reason in found):
        return found
    if decision is None or decision.host != place.host:
        return [Reason(Why.UNKNOWN, "nova-scheduler's log has no decision for that host")]
    if decision.first != place.host:
        return [Reason(Why.UNKNOWN, f"by its own scores Nova's choice was {decision.first}")]
    return found + _host(engine, number, situation, decision)


def _split(engine: Engine, number: int, situation: Situation, place: Place) -> Reason:
    """Account for another split: the planner's decision with the pool as it was seen then must give the rack's."""
    for look, state in situation.pools():
        seen = engine.decide(number, state)
        if (seen.pool_mib, bool(seen.host)) == (place.pool_mib, bool(place.host)):
            return Reason(Why.POOL, f"{look.free} slices free, {look.returning} returning, buffer of {look.buffer}")
    return Reason(Why.UNKNOWN, "with no state of the pool that was seen then the planner gives that split")


def _host(engine: Engine, number: int, situation: Situation, decision: Decision) -> list[Reason]:
    """Account for another host: as few of Nova's factors as give Nova's choice."""
    own = engine.factors(number, situation.item.pool_mib, situation.state())
    for changes in _combinations(_changes(own, decision)):
        factors = own
        for _, change in changes:
            factors = change(factors)
        if best(factors)[:1] == [situation.item.host]:
            return [_accounted(kind, own, engine, number, situation, decision) for kind, _ in changes]
    return [Reason(Why.UNKNOWN, "with all of Nova's factors the planner chooses otherwise")]


def _combinations(changes: Mapping[str, Change]) -> Iterator[Sequence[tuple[str, Change]]]:
    for count in range(1, len(changes) + 1):
        yield from itertools.combinations(changes.items(), count)


def _changes(own: Factors, decision: Decision) -> dict[str, Change]:
    """Return what can be put in the place of the planner's factors, in the order of what is tried first."""
    hosts, raw, scores = decision.hosts, decision.raw, decision.scores

    def of(weigher: str) -> dict[str, float]:
        return dict(zip(hosts, raw[weigher], strict=True))

    def more(weigher: str) -> Change:
        told = dict(zip(hosts, scores[weigher], strict=True))
        return lambda one: replace(one, scores={name: one.scores.get(name, 0.0) + told[name] for name in told})

    if set(hosts) != set(own.cpu) or not raw:
        return {}
    found: dict[str, Change] = {"order": lambda one: _ordered(one, hosts)}
    if IO_OPS in scores and _differs(scores[IO_OPS]):
        found[IO_OPS] = more(IO_OPS)
    if of(CPU) != own.cpu or of(RAM) != own.local_mib:
        found["counts"] = lambda one: replace(one, cpu=_like(one, of(CPU)), local_mib=_like(one, of(RAM)))
    if any(abs(value - own.pond[name]) > EQUAL for name, value in of(POND).items()):
        found[POND] = lambda one: replace(one, pond=_like(one, of(POND)))
    found.update({name: more(name) for name in scores.keys() - KNOWN if _differs(scores[name])})
    return found


def _ordered(one: Factors, hosts: Sequence[str]) -> Factors:
    return replace(one, cpu={name: one.cpu[name] for name in hosts})


def _like(one: Factors, values: Mapping[str, float]) -> dict[str, float]:
    return {name: values[name] for name in one.cpu}


def _differs(scores: Sequence[float]) -> bool:
    return max(scores) - min(scores) > EQUAL


def _accounted(
    kind: str, own: Factors, engine: Engine, number: int, situation: Situation, decision: Decision
) -> Reason:
    if kind == "order":
        return Reason(Why.EQUAL, f"in the order {', '.join(decision.hosts)}")
    if kind == IO_OPS:
        return _builds(situation, decision)
    if kind == "counts":
        return _counts(own, situation, decision)
    if kind == POND:
        return _pond(engine, number, situation, dict(zip(decision.hosts, decision.raw[POND], strict=True)))
    return Reason(Why.OTHER, kind)


def _builds(situation: Situation, decision: Decision) -> Reason:
    """Account for the builds that Nova counted: no host can have more than servers were built there lately."""
    counted = dict(zip(decision.hosts, decision.raw[IO_OPS], strict=True))
    told = ", ".join(f"{builds:g} on {host}" for host, builds in counted.items() if builds)
    if any(builds > situation.most_builds(host) for host, builds in counted.items()):
        return Reason(Why.UNKNOWN, f"Nova counted more builds than there were: {told}")
    return Reason(Why.BUILDS, told)


def _counts(own: Factors, situation: Situation, decision: Decision) -> Reason:
    """Account for what Nova counted free of hosts: each host's difference must be that of servers there."""
    servers: list[str] = []
    moving = True
    for host, cpu, ram in zip(decision.hosts, decision.raw[CPU], decision.raw[RAM], strict=True):
        more = (cpu - own.cpu[host], ram - own.local_mib[host])
        if more == (0, 0):
            continue
        found = situation.miscounts(host, *more)
        if found is None:
            return Reason(Why.UNKNOWN, f"Nova had {more[0]:+g} vCPUs and {more[1]:+g} MiB free on {host}")
        servers += map(str, found)
        moving = moving and all(situation.in_motion(one.item) for one in found)
    return Reason(Why.MOTION if moving else Why.LATE, _some(servers))


def _pond(engine: Engine, number: int, situation: Situation, told: Mapping[str, float]) -> Reason:
    """Account for a pool's comfort: Nova's must be that of the pool as it was seen then."""
    for look, state in situation.pools():
        seen = engine.factors(number, situation.item.pool_mib, state).pond
        if seen.keys() == told.keys() and all(abs(seen[host] - told[host]) <= EQUAL for host in told):
            return Reason(Why.POOL, f"{look.free} slices free, {look.returning} returning, buffer of {look.buffer}")
    return Reason(Why.UNKNOWN, f"no look at the pool gives the comfort that Nova had: {dict(told)}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
