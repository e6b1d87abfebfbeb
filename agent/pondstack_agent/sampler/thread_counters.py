"""Counters of this thread while it works, and how much of what it read came from the pool's node."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pondstack_agent.sampler import numa
from pondstack_agent.telemetry import processors
from pondstack_agent.telemetry.events import EventSet, figures
from pondstack_agent.telemetry.perf import Counts, Event, Group, NotCounted
from pondstack_agent.telemetry.processors import AMD, INTEL, Processor, raw

THIS_THREAD = 0
NO_CPUS = "the pool's node has no CPUs: the events of near and far memory may take it for near"
NO_EVENTS = "the events of near and far memory of this model of processor are not known"
SHARE = "pool_access_percent"
"""The name under which a sample says why it does not tell that."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted while something ran, and why what is missing is."""

    figures: dict[str, float]
    missing: dict[str, str]


def counted(sets: list[EventSet], work: Callable[[], object]) -> Counted:
    """Return what the counters of this thread say of `work`."""
    found: dict[str, float] = {}
    missing = {str(metric): reason for events in sets for metric, reason in events.missing.items()}
    opened: list[tuple[EventSet, Group, Counts]] = []
    try:
        for events in sets:
            if not events.events:
                continue
            try:
                group = Group(THIS_THREAD, events.events, guest_only=False)
            except NotCounted as error:
                missing |= {str(metric): str(error) for metric in events.ratios}
                continue
            opened.append((events, group, group.read()))
        work()
        for events, group, before in opened:
            told = {str(metric): value for metric, value in figures(events, [(before, group.read())])}
            found |= told
            missing |= {str(name): "it was never counted" for name in events.ratios if str(name) not in told}
    finally:
        for _, group, _ in opened:
            group.close()
    return Counted(found, missing)


def share_events(cpu: Processor, pool: int, folder: Path = numa.NODES) -> tuple[tuple[Event, ...], str]:
    """Return the events of loads from near and from far memory; without any, the reason.

    Far is another socket, which stands for the pool as in Pond's prototype (section 6.1).
    """
    if not numa.cpus(pool, folder):
        return (), NO_CPUS
    if cpu.vendor == INTEL and processors.is_known(cpu):
        return (raw(0xD3, 0x01), raw(0xD3, 0x02)), ""
    if cpu.vendor == AMD and processors.is_known(cpu):
        return (raw(0x44, 0x08), raw(0x44, 0x40)), ""
    return (), NO_EVENTS


def share(events: tuple[Event, ...], work: Callable[[], object]) -> tuple[float | None, str]:
    """Run `work`; return the percentage of its loads from memory that came from far, or None and the reason."""
    try:
        group = Group(THIS_THREAD, events, guest_only=False)
    except NotCounted as error:
        work()
        return None, str(error)
    try:
        before = group.read()
        work()
        after = group.read()
    finally:
        group.close()
    near, far = (now - then for now, then in zip(after.values, before.values, strict=True))
    return (100.0 * far / (near + far), "") if near + far else (None, "nothing was read from memory")
