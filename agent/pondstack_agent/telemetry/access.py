"""Access scans of all guests: hot and cold memory by node, what a scan cost, and that it costs no more than allowed."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from oslo_log import log

from pondstack.domain.telemetry import Metric
from pondstack.domain.units import MIB
from pondstack_agent.qemu.process import NOT_ALLOWED
from pondstack_agent.telemetry import pagemap, referenced, untouched
from pondstack_agent.telemetry.damon import Damon
from pondstack_agent.telemetry.guest_process import under_kvm
from pondstack_agent.telemetry.mappings import Group
from pondstack_agent.telemetry.memory import Guests, running_guests
from pondstack_agent.telemetry.outbox import Outbox
from pondstack_agent.telemetry.referenced import Used

LOG = log.getLogger(__name__)

GIB = 2**30
SECONDS_PER_GIB = 0.05
"""What a first scan is taken to cost, in seconds of a CPU; afterwards the last one's cost is what counts."""
FIRST = "this was the first scan; what was used since is known at the next"


@dataclass(frozen=True, slots=True)
class Scanned:
    """The last scan of a guest: of which process, when, at which cost."""

    pid: int
    at: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time in seconds: a monotonic one, and what this thread has had of a CPU."""

    wall: Callable[[], float] = time.monotonic
    cpu: Callable[[], float] = time.thread_time


class AccessLook:
    """Scans every guest once in `interval_seconds`, in all for `cpu_percent` of one CPU at most.

    Who was scanned longest ago comes first, so that a limit that is too low for all leaves nobody out for ever.
    """

    def __init__(
        self,
        outbox: Outbox,
        interval_seconds: float,
        cpu_percent: float,
        damon: Damon,
        *,
        running: Guests = running_guests,
        proc: Path = pagemap.PROC,
        clocks: Clocks | None = None,
    ) -> None:
        self._outbox = outbox
        self._damon = damon
        self._allowed_seconds = interval_seconds * cpu_percent / 100
        self._running = running
        self._proc = proc
        self._clocks = clocks or Clocks()
        self._last: dict[str, Scanned] = {}

    def run(self) -> None:
        """Scan once."""
        running = self._running()
        self._last = {name: last for name, last in self._last.items() if running.get(name) == last.pid}
        spent = 0.0
        for name in sorted(running, key=self._scanned_at):
            try:
                spent += self._guest(name, running[name], self._allowed_seconds - spent)
            except PermissionError:
                self._missing(name, NOT_ALLOWED, None)
            except OSError as error:
                LOG.debug("Guest %s (process %d) cannot be scanned: %s", name, running[name], error)

    def _scanned_at(self, name: str) -> float:
        last = self._last.get(name)
        return last.at if last else float("-inf")

    def _guest(self, name: str, pid: int, left_seconds: float) -> float:
        """Scan one guest if it costs no more than `left_seconds`; returns what it cost."""
        groups = untouched.groups(pid, self._proc)
        if not groups:
            return 0.0
        kvm = under_kvm(pid, self._proc)
        reason = (self._damon.why_not() if kvm else "") or self._too_dear(name, groups, left_seconds)
        if reason:
            self._missing(name, reason, None)
            return 0.0
        wall, cpu, kernel = self._clocks.wall(), self._clocks.cpu(), 0.0
        ranges = [item for group in groups for item in group.ranges]
        if kvm:
            watched = self._damon.watch(pid, ranges)
            used, kernel = watched.used, watched.cpu_seconds
        else:
            used = referenced.scan(pid, ranges, self._proc)
        wall, cpu = self._clocks.wall() - wall, self._clocks.cpu() - cpu + kernel
        first = not kvm and name not in self._last
        self._last[name] = Scanned(pid, self._clocks.wall(), cpu)
        self._outbox.add(name, Metric.SCAN_SECONDS, wall)
        self._outbox.add(name, Metric.SCAN_CPU_SECONDS, cpu)
        if first:
            self._missing(name, FIRST, None)
        else:
            self._report(name, groups, used)
        return cpu

    def _too_dear(self, name: str, groups: Sequence[Group], left_seconds: float) -> str:
        last = self._last.get(name)
        size = sum(group.size_bytes for group in groups)
        expected = last.cpu_seconds if last else size / GIB * SECONDS_PER_GIB
        if expected <= left_seconds:
            return ""
        return (
            f"skipped: the scan would take about {expected:.3f} s of a CPU, and of the {self._allowed_seconds:.3f} s "
            f"that [telemetry] access_cpu_percent allows {max(0.0, left_seconds):.3f} s are left"
        )

    def _report(self, name: str, groups: Sequence[Group], used: Sequence[Used]) -> None:
        rest, total = list(used), Used()
        for group in groups:
            mine, rest = rest[: len(group.ranges)], rest[len(group.ranges) :]
            figure = _sum(mine, group.reason)
            total = _sum([total, figure], "")
            for node in group.nodes:
                alike = Used(reason="nodes look alike from outside") if len(group.nodes) > 1 else figure
                self._figure(name, alike, node.number)
        self._figure(name, total, None)

    def _figure(self, name: str, used: Used, node: int | None) -> None:
        if used.reason:
            self._missing(name, used.reason, node)
            return
        self._outbox.add(name, Metric.HOT_MIB, used.hot_bytes / MIB, node)
        self._outbox.add(name, Metric.COLD_MIB, used.cold_bytes / MIB, node)

    def _missing(self, name: str, reason: str, node: int | None) -> None:
        for metric in (Metric.HOT_MIB, Metric.COLD_MIB):
            self._outbox.missing(name, metric, reason, node)


def _sum(parts: Sequence[Used], reason: str) -> Used:
    reason = reason or next((part.reason for part in parts if part.reason), "")
    if reason:
        return Used(reason=reason)
    return Used(sum(part.hot_bytes for part in parts), sum(part.cold_bytes for part in parts))
