"""How busy the host is and how many CPUs each guest uses, by /proc; and what pagers keep where."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oslo_log import log

from pondstack.domain.telemetry import HostMetric, Metric, Source
from pondstack_agent.telemetry.memory import Guests
from pondstack_agent.telemetry.outbox import HostOutbox, Outbox
from pondstack_agent.telemetry.pagemap import PROC

LOG = log.getLogger(__name__)

TICKS = os.sysconf("SC_CLK_TCK")
"""Of /proc's times in a second."""
_IDLE, _IOWAIT, _COUNTED = 3, 4, 8
"""Columns of /proc/stat: those in which a CPU does nothing, and how many count (guests' time is in user's, too)."""
_USER, _SYSTEM = 11, 12
"""Fields of /proc/PID/stat behind the name of the command."""

Played = Callable[[], float | None]
"""Returns the load of the host that is played in place of its own, in percent; None: its own counts."""


def as_it_is() -> None:
    """Play no load."""


Views = Callable[[], Sequence[Mapping[str, Any]]]
"""Returns what all consumers of remote memory have, as RemoteMemory.views."""


class HostLoadLook:
    """Looks at the host's own CPUs and memory. `most_lent_mib`: what it may lend in all, 0: there is no bound."""

    def __init__(
        self, outbox: HostOutbox, proc: Path = PROC, played: Played = as_it_is, most_lent_mib: int = 0
    ) -> None:
        self._outbox, self._proc, self._played, self._most_lent_mib = outbox, proc, played, most_lent_mib
        self._before: tuple[int, int] | None = None

    def run(self) -> None:
        """Look once; the first look has no load yet."""
        busy, idle, cpus = _times((self._proc / "stat").read_text())
        before, self._before = self._before, (busy, idle)
        self._outbox.add(HostMetric.CPUS, cpus)
        played = self._played()
        if played is not None:
            self._outbox.add(HostMetric.LOAD_PERCENT, played, Source.SYNTHETIC)
        elif before is not None:
            passed = busy - before[0] + idle - before[1]
            if passed > 0:
                self._outbox.add(HostMetric.LOAD_PERCENT, 100.0 * max(0, busy - before[0]) / passed)
        amounts = _amounts((self._proc / "meminfo").read_text())
        self._outbox.add(HostMetric.MEMORY_MIB, amounts["MemTotal"] / 1024)
        self._outbox.add(HostMetric.FREE_MIB, amounts["MemAvailable"] / 1024)
        if self._most_lent_mib:
            self._outbox.add(HostMetric.MOST_LENT_MIB, self._most_lent_mib)


def _times(text: str) -> tuple[int, int, int]:
    """Return the ticks in which all CPUs were busy and idle, and how many CPUs there are."""
    lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    total = [int(word) for word in lines[0][1:]][:_COUNTED]
    idle = total[_IDLE] + total[_IOWAIT]
    return sum(total) - idle, idle, len(lines) - 1


def _amounts(text: str) -> dict[str, int]:
    """Return the lines of meminfo, in KiB."""
    words = (line.split() for line in text.splitlines())
    return {line[0].rstrip(":"): int(line[1]) for line in words if len(line) > 1}


class GuestLoadLook:
    """Looks at how much CPU time the process of each guest has had."""

    def __init__(self, outbox: Outbox, running: Guests, clock: Callable[[], float], proc: Path = PROC) -> None:
        self._outbox, self._running, self._clock, self._proc = outbox, running, clock, proc
        self._before: dict[tuple[str, int], tuple[float, int]] = {}

    def run(self) -> None:
        """Look once; a guest is told of from its second look on."""
        found = {}
        for consumer_uuid, pid in self._running().items():
            try:
                ticks = _ticks((self._proc / str(pid) / "stat").read_text())
            except OSError as error:
                LOG.debug("Guest %s (process %d) cannot be looked at: %s", consumer_uuid, pid, error)
                continue
            key, now = (consumer_uuid, pid), self._clock()
            before = self._before.get(key)
            found[key] = (now, ticks)
            if before is not None and now > before[0]:
                used = max(0, ticks - before[1]) / TICKS / (now - before[0])
                self._outbox.add(consumer_uuid, Metric.USED_CPUS, used)
        self._before = found


def _ticks(text: str) -> int:
    fields = text.rpartition(")")[2].split()
    return int(fields[_USER]) + int(fields[_SYSTEM])


class PagerLook:
    """Looks at what the pagers of guests with remote memory have resident and evicted."""

    def __init__(self, outbox: Outbox, views: Views) -> None:
        self._outbox, self._views = outbox, views

    def run(self) -> None:
        """Look once; a guest that no pager serves now has neither."""
        for view in self._views():
            served = view.get("extension") or {}
            for metric, key in ((Metric.RESIDENT_MIB, "resident_mib"), (Metric.EVICTED_MIB, "evicted_mib")):
                if served.get(key) is not None:
                    self._outbox.add(str(view["consumer_uuid"]), metric, float(served[key]))
