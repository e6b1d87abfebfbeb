"""Real agents that lend memory which nobody takes: their lender's process is a table with a few bytes per buffer."""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any
from unittest import mock
from uuid import UUID

from nova import context

from pondstack.domain.errors import NotFound
from pondstack.domain.lending import LenderKind
from pondstack.domain.units import MIB
from pondstack_agent.build import build_agent
from pondstack_agent.lending.buffer_table import BufferTable
from pondstack_agent.lending.model import Holding
from tests.functional import rack
from tests.sim.lending.lender import SimLender

BUFFER_MIB = 64
HOST_MIB = 12288
"""What a host has in all. Nova keeps 512 of it ([DEFAULT] reserved_host_memory_mb)."""

_LENDING = f"""
[lending]
transport = shm
shm_folder = {{folder}}/lenders
buffer_mib = {BUFFER_MIB}
reserve_mib = 0
pressure_mib = 0
"""


class StandInLender:
    """pondstack_agent.lending.client.LenderClient of one host; outlives the agent, as a process does."""

    buffer_mib = BUFFER_MIB

    def __init__(self, host: str) -> None:
        self._lives = (str(UUID(int=(hash(host) % 2**32 << 64) + number)) for number in itertools.count(1))
        self._holding = Holding()
        self._table: Any = None

    def start(self) -> None:
        """Start a life."""
        if self._table is None:
            self._holding = Holding(next(self._lives), LenderKind.ACTIVE, BUFFER_MIB)
            lender = SimLender(self._holding.incarnation, _Bytes(), _nothing, _nothing)  # type: ignore[arg-type]
            self._table = BufferTable(lender, BUFFER_MIB)

    def hold(self, seconds: float | None = None) -> Holding:
        """Return what there is."""
        del seconds
        if self._table is None:
            return Holding()
        return Holding(self._holding.incarnation, self._holding.kind, BUFFER_MIB, self._table.buffers())

    def become(self, incarnation: str, kind: LenderKind) -> None:
        """Note the kind."""
        self._holding = Holding(incarnation, kind, BUFFER_MIB)

    def register(self, incarnation: str) -> int:
        """Take memory."""
        return int(self._of(incarnation).register())

    def export(self, incarnation: str, indexes: Sequence[int], borrower: str, generations: Any = None) -> Any:
        """Make keys."""
        return self._of(incarnation).export(indexes, borrower, generations)

    def revoke(self, incarnation: str, indexes: Sequence[int], generations: Any = None) -> Any:
        """End keys."""
        return self._of(incarnation).revoke(indexes, generations)

    def withdraw(self, incarnation: str, indexes: Sequence[int]) -> Any:
        """Give memory back."""
        return self._of(incarnation).withdraw(indexes)

    def end(self, incarnation: str) -> None:
        """End an empty life."""
        assert not self._of(incarnation).buffers()
        self._table = None

    def _of(self, incarnation: str) -> Any:
        if self._table is None or incarnation != self._holding.incarnation:
            raise NotFound(f"there is no incarnation {incarnation}")
        return self._table


class _Bytes:
    """Random bytes for keys that nobody uses."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def randbytes(self, size: int) -> bytes:
        """Return bytes that were not returned before."""
        return next(self._numbers).to_bytes(size, "big")


def _nothing(*_told: Any) -> None:
    """Watch nothing."""


class NovaWithLenders(rack.NovaWithRack):
    """One host that can lend, of HOST_MIB. `self.lenders`: its lender's process, by host."""

    hosts = ("host1",)

    def setUp(self) -> None:
        """Have the lenders' processes, and hosts of this size, there before anything starts."""
        self.lenders: dict[str, StandInLender] = {host: StandInLender(host) for host in self.hosts}
        room = partial(build_agent, meminfo=lambda: (2 * HOST_MIB * MIB, 2 * HOST_MIB * MIB), growth_mib=lambda: 0)
        for name, stand_in in (
            ("pondstack_agent.service.build_agent", room),
            ("pondstack_agent.lending.build.LenderClient", lambda _f, command, _s: self.lenders[command.host]),
            ("pondstack_nova.virt_fake.PondFakeDriver.memory_mb", HOST_MIB),
            ("tests.functional.rack.AGENT_CONF", rack.AGENT_CONF + _LENDING),
        ):
            patcher = mock.patch(name, stand_in)
            patcher.start()
            self.addCleanup(patcher.stop)
        super().setUp()

    def delegate(self, mib: int, host: str = "host1", **more: Any) -> dict[str, Any]:
        """Have a host lend; returns the operation."""
        return self.api_of_controller.delegate_host(name=host, mib=mib, kind="active", **more)

    def operation(self, begun: dict[str, Any], host: str = "host1") -> dict[str, Any]:
        """Return how far an operation is."""
        return self.delegate(begun["mib"], host, operation_id=begun["operation_id"])

    def done(self, begun: dict[str, Any]) -> dict[str, Any]:
        """Have nova-compute make its rounds until an operation is done; returns it."""

        def look() -> dict[str, Any]:
            self.reports()
            now = self.operation(begun)
            assert now["state"] == "done", now
            return now

        return self.eventually(look)  # type: ignore[no-any-return]

    def reports(self, host: str = "host1") -> None:
        """Have a host's nova-compute make a round."""
        self.computes[host].manager.update_available_resource(context.get_admin_context())

    def admitted_mib(self, host: str = "host1") -> int:
        """Return what may be borrowed of a host, whoever leads."""
        return int(self.real_controller.resources.reader.host(host).admitted_mib)

    def memory(self, host: str = "host1") -> dict[str, Any]:
        """Return the inventory of a host's MEMORY_MB."""
        inventory: dict[str, Any] = self._get_provider_inventory(self._get_provider_uuid_by_name(host))["MEMORY_MB"]
        return inventory

    def claimed_mib(self, host: str = "host1") -> int:
        """Return what is claimed of a host's memory, by anybody."""
        return int(self._get_provider_usages(self._get_provider_uuid_by_name(host))["MEMORY_MB"])
