"""What must hold of the lead as time goes by: who has it reaches the broker if anybody does, and judges nobody else."""

from typing import TYPE_CHECKING

from . import settings
from .invariants import Violation
from .kernel import Process

if TYPE_CHECKING:
    from .rack import Rack

LOOK_SECONDS = 0.5
HEARD_SECONDS = settings.DOWN_SECONDS + 2 * settings.HEARTBEAT_SECONDS
"""An agent that was well for so long has been heard of by whoever heard anything."""


class LeadWatch:
    """Looks at the lease now and then, from outside. Nothing in here is told to the code under test.

    `_well`: since when each controller and each agent runs and reaches what it needs, `_deaf`: since when each one has
    not reached the broker; `_good`: when the lease was last with one that is well, or has changed hands.
    """

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack
        self._well: dict[str, float] = {}
        self._deaf: dict[str, float] = {}
        self._good = 0.0
        self._epoch = 0
        self._spans: list[tuple[int, float, float]] = []

    def led_seconds(self, since: float) -> float:
        """Return the longest time since a moment for which one leader led that reached all that it needs."""
        return max((end - max(begin, since) for _epoch, begin, end in self._spans), default=0.0)

    def start(self) -> None:
        """Look for the first time, and go on; not where the clock that leases are judged by jumps."""
        if not any(step.kind == "clock_jump" for step in self._rack.history.faults):
            self._rack.watch.judged = self._judged
            self._look()

    def _look(self) -> None:
        now, rack = self._rack.scheduler.now, self._rack
        nodes = {name: node.process for name, node in rack.nodes.items()}
        agents = {name: host.process for name, host in rack.hosts.items() if host.process is not None}
        well = [name for name, process in (nodes | agents).items() if self._is_well(name, process)]
        self._well = {name: self._well.get(name, now) for name in well}
        self._deaf = {name: self._deaf.get(name, now) for name in nodes if not rack.network.on_bus(name)}
        epoch, holder = rack.lease_now()
        if epoch != self._epoch or holder in self._well:
            self._epoch, self._good = epoch, now
        self._note_span(epoch, now, holder in self._well)
        self._check_lead(holder, now - settings.LEADS_AGAIN_SECONDS)
        rack.scheduler.call_at(now + LOOK_SECONDS, self._look)

    def _note_span(self, epoch: int, now: float, well: bool) -> None:
        if not well:
            self._spans.append((0, now, now))  # it ends what was before
        elif self._spans and self._spans[-1][0] == epoch:
            self._spans[-1] = (epoch, self._spans[-1][1], now)
        else:
            self._spans.append((epoch, now, now))

    def _is_well(self, name: str, process: Process) -> bool:
        network, now = self._rack.network, self._rack.scheduler.now
        if not process.alive or process.paused_until > now or any(window.until > now for window in network.windows):
            return False
        return network.on_bus(name) and network.reaches("database")

    def _check_lead(self, holder: str, since: float) -> None:
        able = [name for name in self._rack.nodes if self._well.get(name, since + 1.0) <= since]
        if able and self._good < since:
            whose = f"{holder} has the lead" if holder else "nobody has the lead"
            raise Violation("lead_out_of_reach", f"{whose} for long, and {able} would reach the broker")

    def _judged(self, host: str) -> None:
        """Memory of a host was set aside because its agent is silent."""
        task, now = self._rack.scheduler.current(), self._rack.scheduler.now
        leader = task.process.name if task else ""
        deaf, well = now - self._deaf.get(leader, now), now - self._well.get(host, now)
        if deaf > settings.DOWN_SECONDS / 2 + LOOK_SECONDS and well > HEARD_SECONDS:
            raise Violation(
                "deaf_judged", f"{leader} has not heard the bus for {deaf:.1f} s and takes {host} for silent"
            )
