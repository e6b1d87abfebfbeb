"""Core counters of every guest, by its vCPU threads (Pond 4.2, 5): ratios of what was counted between two readings.

A reading is one read(2) for each vCPU and group. Which guests and vCPUs there are is looked up now and then only.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oslo_log import log

from pondstack_agent.qemu.process import NOT_ALLOWED, vcpu_threads
from pondstack_agent.telemetry import pagemap
from pondstack_agent.telemetry.events import EventSet, figures
from pondstack_agent.telemetry.guest_process import Counters, under_kvm
from pondstack_agent.telemetry.memory import Guests, running_guests
from pondstack_agent.telemetry.outbox import Outbox
from pondstack_agent.telemetry.perf import Counts, NotCounted

LOG = log.getLogger(__name__)

REFRESH_SECONDS = 30.0
NO_VCPUS = "no thread of the guest's process is named as a vCPU"


@dataclass(slots=True)
class _Counted:
    """One set of one guest: its threads' counters and what they said last."""

    groups: Counters = field(default_factory=Counters)
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
        now = counted.groups.read()
        before, counted.last = counted.last, now
        for metric, value in figures(events, list(zip(before, now, strict=True))):
            self._outbox.add(name, metric, value)

    def _refresh(self) -> None:
        found = {}
        for name, pid in self._running().items():
            try:
                found[name] = (pid, vcpu_threads(pid, self._proc), under_kvm(pid, self._proc))
            except PermissionError:
                for metric in (metric for events in self._sets for metric in (*events.ratios, *events.missing)):
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
        for metric, absent in events.missing.items():
            self._outbox.missing(name, metric, absent)
        if not events.events:
            return
        reason = "" if threads else NO_VCPUS
        try:
            for tid in threads:
                counted.groups.add(tid, events.events, guest_only=kvm)
            counted.last = counted.groups.read()
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
    counted.groups.close()
    counted.last = []
