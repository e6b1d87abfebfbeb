"""Has a host lend all that it can spare, and takes back what it lent by that: for plans, and hosts that fall asleep."""

from collections.abc import Callable
from typing import Any

from oslo_log import log

from pondstack.controller.lending.lenders import call_agent
from pondstack.domain.admission import LendStage
from pondstack.domain.errors import Conflict
from pondstack.domain.lending import LenderKind
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_lending_api import AgentLendingAPI

LOG = log.getLogger(__name__)


class HostLends:
    """Those of one leader. `admit` wakes who has hosts lend."""

    def __init__(self, ledger: Ledger, agents: AgentLendingAPI, admit: Callable[[], object]) -> None:
        self._ledger, self._agents, self._admit = ledger, agents, admit

    def begin(self, host: str, operation_id: str) -> None:
        """Have a host that stays awake lend all that it can, in the background.

        Raises Conflict (it has none to spare, or lends by another operation), HostUnusable, AgentUnavailable.
        """
        mib = self.whole_mib(host)
        if not mib:
            raise Conflict(f"host {host} has no memory to spare, or takes no part in lending; see [lending]")
        self._ledger.lends.begin(operation_id, host, mib, LenderKind.ACTIVE)
        self._admit()

    def whole_mib(self, host: str) -> int:
        """Return what a host would lend in all, in whole buffers; raises as call_agent."""
        told: dict[str, Any] = call_agent(host, lambda: self._agents.get_lending(host))
        size = int(told["buffer_mib"])
        return self._lent_mib(host) + int(told.get("lendable_mib") or 0) // size * size

    def waits(self, host: str, operation_id: str) -> str | None:
        """Return what a lend that is under way waits for, None: it is not under way."""
        lend = self._ledger.lends.of_host(host)
        return lend.reason if lend is not None and lend.operation_id == operation_id else None

    def ended(self, operation_id: str) -> tuple[int, str] | None:
        """Return how much was lent at the end of a lend, and why it was less; None: there is no word of its end."""
        return self._ledger.lends.ended(operation_id)

    def take_back(self, host: str, operation_id: str, back_id: str) -> bool:
        """Have a host take back what it has lent since a lend began, in the background; False: that is nothing.

        Raises as call_agent.
        """
        before = self._ledger.lends.before(operation_id)
        if before is None:
            LOG.warning(
                "Nobody knows any more what host %s had lent before: it goes on lending; see host reclaim", host
            )
            return False
        mib = self._lent_mib(host) - before
        if mib <= 0:
            return False
        lend = self._ledger.lends.of_host(host)
        if lend is not None and lend.stage is LendStage.WAITING:
            self._ledger.lends.end(lend, 0, "a plan takes its memory back")
        epoch = self._ledger.epoch
        call_agent(host, lambda: self._agents.reclaim(host, epoch=epoch, operation_id=back_id, mib=mib))
        return True

    def _lent_mib(self, host: str) -> int:
        return sum(buffer.size_mib for buffer in self._ledger.buffers.find(host))
