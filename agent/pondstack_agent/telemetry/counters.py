"""Core counters of every guest, by its vCPU threads (Pond 4.2, 5): ratios of what was counted between two readings.

A reading is one read(2) for each vCPU and group. Which guests and vCPUs there are is looked up now and then only.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oslo_log import log

from pondstack.domain.telemetry import Metric
from pondstack_agent.qemu.process import NOT_ALLOWED, under_kvm, vcpu_threads
from pondstack_agent.telemetry import pagemap, perf
from pondstack_agent.telemetry.memory import Guests, running_guests
from pondstack_agent.telemetry.outbox import Outbox
from pondstack_agent.telemetry.perf import Counts, Event, Group, NotCounted

LOG = log.getLogger(__name__)

REFRESH_SECONDS = 30.0
NO_VCPUS = "no thread of the guest's process is named as a vCPU"
NO_TOP_DOWN = "this machine's counters do not tell of the pipeline's slots (top-down events)"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A metric: one event's count for `scale` of another's; both by their place in the set."""

    above: int
    below: int
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class EventSet:
    """Events that are counted together, and what is told of them. `events` (): not on this machine, for `reason`."""

    events: tuple[Event, ...]
    ratios: Mapping[Metric, Ratio]
    reason: str = ""


GENERAL = EventSet(
    tuple(Event(perf.HARDWARE, config) for config in (perf.CYCLES, perf.INSTRUCTIONS, perf.CACHE_MISSES)),
    {Metric.INSTRUCTIONS_PER_CYCLE: Ratio(1, 0), Metric.CACHE_MISSES_PER_KILO: Ratio(2, 1, 1000.0)},
)


def top_down(device: Path = perf.DEVICE) -> EventSet:
    """Return the top-down events of this machine's CPUs. The slots lead: the others are counted with them only."""
    slots = perf.event_of("slots", device)
    named = {
        Metric.BACKEND_BOUND_PERCENT: perf.event_of("topdown-be-bound", device),
        Metric.MEMORY_BOUND_PERCENT: perf.event_of("topdown-mem-bound", device),
    }
    known = {metric: event for metric, event in named.items() if event is not None}
    if slots is None or not known:
        return EventSet((), dict.fromkeys(named, Ratio(0, 0)), NO_TOP_DOWN)
    ratios = {metric: Ratio(place, 0, 100.0) for place, metric in enumerate(known, 1)}
    return EventSet((slots, *known.values()), ratios)


@dataclass(slots=True)
class _Counted:
    """One set of one guest: its threads' counters and what they said last."""

    groups: list[Group] = field(default_factory=list)
    last: list[Counts] = field(default_factory=list)


@dataclass(slots=True)
class _Guest:
    pid: int
    threads: tuple[int, ...]
    counted: list[_Counted]


class CountersLook:
    """Reads the counters of all guests; what cannot be counted is said at each refresh."""

    def __init__(
        self,
        outbox: Outbox,
        sets: Sequence[EventSet],
        *,
        running: Guests = running_guests,
        proc: Path = pagemap.PROC,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._outbox = outbox
        self._sets = sets
        self._running = running
        self._proc = proc
        self._clock = clock
        self._guests: dict[str, _Guest] = {}
        self._refreshed = float("-inf")

    def run(self) -> None:
        """Read once."""
        if self._clock() - self._refreshed >= REFRESH_SECONDS:
            self._refresh()
            self._refreshed = self._clock()
        for name, guest in self._guests.items():
            for events, counted in zip(self._sets, guest.counted, strict=True):
                if counted.groups:
                    self._read(name, events, counted)

    def _read(self, name: str, events: EventSet, counted: _Counted) -> None:
        now = [group.read() for group in counted.groups]
        before, counted.last = counted.last, now
        pairs = list(zip(before, now, strict=True))
        if not any(new.running > old.running for old, new in pairs):
            return  # the guest did not run, or the counters were somebody else's
        sums = [sum(new.values[place] - old.values[place] for old, new in pairs) for place in range(len(events.events))]
        for metric, ratio in events.ratios.items():
            if sums[ratio.below] > 0:
                self._outbox.add(name, metric, sums[ratio.above] * ratio.scale / sums[ratio.below])

    def _refresh(self) -> None:
        found = {}
        for name, pid in self._running().items():
            try:
                found[name] = (pid, vcpu_threads(pid, self._proc), under_kvm(pid, self._proc))
            except PermissionError:
                for metric in (metric for events in self._sets for metric in events.ratios):
                    self._outbox.missing(name, metric, NOT_ALLOWED)
            except OSError as error:
                LOG.debug("Guest %s (process %d) cannot be looked at: %s", name, pid, error)
        for name, guest in list(self._guests.items()):
            if (guest.pid, guest.threads) != found.get(name, (0, (), False))[:2]:
                _close(self._guests.pop(name))
        for name, (pid, threads, kvm) in found.items():
            guest = self._guests.setdefault(name, _Guest(pid, threads, [_Counted() for _ in self._sets]))
            for events, counted in zip(self._sets, guest.counted, strict=True):
                if not counted.groups:
                    self._open(name, events, counted, threads, kvm)

    def _open(self, name: str, events: EventSet, counted: _Counted, threads: Sequence[int], kvm: bool) -> None:
        reason = events.reason or ("" if threads else NO_VCPUS)
        try:
            for tid in () if reason else threads:
                counted.groups.append(Group(tid, events.events, guest_only=kvm))
            counted.last = [group.read() for group in counted.groups]
        except (NotCounted, OSError) as error:
            _close_groups(counted)
            reason = str(error)
        if reason:
            for metric in events.ratios:
                self._outbox.missing(name, metric, reason)


def _close(guest: _Guest) -> None:
    for counted in guest.counted:
        _close_groups(counted)


def _close_groups(counted: _Counted) -> None:
    for group in counted.groups:
        group.close()
    counted.groups, counted.last = [], []
