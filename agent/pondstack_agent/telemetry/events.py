"""Sets of events that are counted together, and the ratios that are told of them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pondstack.domain.telemetry import Metric
from pondstack_agent.telemetry.perf import Counts, Event

RUNNING = -1
"""In place of an event: the nanoseconds for which the threads ran and were counted."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A metric: one event's count for `scale` of another's; both by their place in the set, or RUNNING."""

    above: int
    below: int
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class EventSet:
    """Events that are counted together, and what is told of them; `missing`: what this machine cannot tell, and why."""

    events: tuple[Event, ...]
    ratios: Mapping[Metric, Ratio]
    missing: Mapping[Metric, str] = field(default_factory=dict)


def figures(events: EventSet, pairs: Sequence[tuple[Counts, Counts]]) -> Iterator[tuple[Metric, float]]:
    """Return what some threads' readings (before, after) say together; nothing of what did not happen."""
    running = sum(new.running - old.running for old, new in pairs)
    if running <= 0:
        return  # the threads did not run, or the counters were somebody else's
    sums = [sum(new.values[place] - old.values[place] for old, new in pairs) for place in range(len(events.events))]
    sums.append(running)
    for metric, ratio in events.ratios.items():
        if sums[ratio.below] > 0:
            yield metric, sums[ratio.above] * ratio.scale / sums[ratio.below]
