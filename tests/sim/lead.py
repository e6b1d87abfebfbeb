"""What must hold of the lead as time goes by: somebody who reaches the broker has it soon, if there is anybody."""

from typing import TYPE_CHECKING

from . import settings
from .watch import Violation

if TYPE_CHECKING:
    from .rack import Rack

LOOK_SECONDS = 0.5


class LeadWatch:
    """Looks at the lease now and then, from outside. Nothing in here is told to the code under test.

    `_well`: since when each controller runs and reaches database and broker; `_good`: when the lease was last with one
    of those, or has changed hands.
    """

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack
        self._well: dict[str, float] = {}
        self._good = 0.0
        self._epoch = 0

    def start(self) -> None:
        """Look for the first time, and go on; not where the clock that leases are judged by jumps."""
        if not any(step.kind == "clock_jump" for step in self._rack.history.faults):
            self._look()

    def _look(self) -> None:
        scheduler = self._rack.scheduler
        self._well = {name: self._well.get(name, scheduler.now) for name in self._rack.nodes if self._is_well(name)}
        epoch, holder = self._rack.lease_now()
        if epoch != self._epoch or holder in self._well:
            self._epoch, self._good = epoch, scheduler.now
        self._judge(holder)
        scheduler.call_at(scheduler.now + LOOK_SECONDS, self._look)

    def _is_well(self, name: str) -> bool:
        process, network, now = self._rack.nodes[name].process, self._rack.network, self._rack.scheduler.now
        if not process.alive or process.paused_until > now or any(window.until > now for window in network.windows):
            return False
        return network.on_bus(name) and network.reaches("database")

    def _judge(self, holder: str) -> None:
        since = self._rack.scheduler.now - settings.LEADS_AGAIN_SECONDS
        able = [name for name, began in self._well.items() if began <= since]
        if able and self._good < since:
            whose = f"{holder} has the lead" if holder else "nobody has the lead"
            raise Violation("lead_out_of_reach", f"{whose} for long, and {able} would reach the broker")
