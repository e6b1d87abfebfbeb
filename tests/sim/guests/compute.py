"""nova-compute of one host of a history: its rounds report the host's inventory, as the virt driver makes it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import oslo_messaging

from pondstack.clients.placement import Inventory
from pondstack.domain.admission import LENT_CLASS, MEMORY_CLASS, LentReport
from pondstack.domain.errors import PondError, Unavailable
from pondstack_nova.compute import lent_inventory
from pondstack_nova.compute.lent_inventory import Unknown

from ..api import SimAgentAPI
from .plan import HOST_MIB, KEPT_MIB, ratio

if TYPE_CHECKING:
    from ..kernel import Process
    from ..rack import Rack

ROUND_SECONDS = 2.0
ASK_SECONDS = 2.0
"""Longer than an agent waits for a lender that is frozen."""
TRIES = 4


class SimCompute:
    """Its processes, one after the other; between the looks of one at agent and Placement, everything may happen."""

    def __init__(self, rack: "Rack", host: str) -> None:
        self._rack, self._host = rack, host
        self._provider = rack.placement.providers[f"provider-{host}"]
        self._agents = SimAgentAPI(rack.network, rack.moments, ASK_SECONDS)
        self.process: Process | None = None

    def start(self) -> None:
        """Start a process, unless one runs, or its host sleeps."""
        if self._rack.hosts[self._host].asleep:
            return
        if self.process is None or not self.process.alive:
            self.process = self._rack.scheduler.process(f"nova-compute {self._host}")
            self._rack.scheduler.spawn(self.process, self._rounds)

    def restart(self, seconds: float) -> None:
        """Kill the process, and start another one after so many seconds."""
        if self.process is not None:
            self._rack.scheduler.kill(self.process)
        self._rack.scheduler.call_at(self._rack.scheduler.now + seconds, self.start)

    def pause(self, seconds: float) -> None:
        """Have the process do nothing for so long."""
        if self.process is not None:
            self.process.paused_until = self._rack.scheduler.now + seconds

    def _rounds(self) -> None:
        process = self.process
        assert process is not None
        while True:
            if self._rack.hosts[self._host].up:
                self._round()
            self._rack.scheduler.sleep(process.rng.uniform(0.3, 1.0) * ROUND_SECONDS)

    def _round(self) -> None:
        for _ in range(TRIES):
            generation, before = self._provider.generation, dict(self._provider.records)
            lent = self._ask()
            wanted = self._inventory(before, lent)
            self._rack.moments.pass_by("rpc")
            if self._rack.placement.down_until > self._rack.scheduler.now or wanted == before:
                return
            if self._provider.generation == generation:
                self._provider.records = wanted
                self._provider.generation += 1
                self._rack.placement.changed()
                return

    def _ask(self) -> LentReport | Unknown:
        try:
            return self._agents.get_lent(self._host)
        except (PondError, Unavailable, oslo_messaging.MessagingTimeout) as error:
            self._rack.scheduler.note(f"nova-compute {self._host} hears nothing of what is lent: {error}")
            return Unknown.SILENT

    def _inventory(self, before: dict[str, Inventory], lent: LentReport | Unknown) -> dict[str, Inventory]:
        plain: dict[str, Any] = {
            MEMORY_CLASS: {
                "total": HOST_MIB,
                "reserved": KEPT_MIB,
                "min_unit": 1,
                "max_unit": HOST_MIB,
                "step_size": 1,
                "allocation_ratio": ratio(self._rack.history),
            }
        }
        former = {name: asdict(record) for name, record in before.items()}
        return {name: Inventory(**record) for name, record in lent_inventory.reserve(plain, former, lent).items()}

    def reserved_for(self) -> tuple[int, int]:
        """Return what Placement has as lent: how much, and which."""
        record = self._provider.records.get(LENT_CLASS)
        return (record.total, record.max_unit) if record else (0, 0)
