"""The verb `reclaim` (GS_reclaim, Zombieland 4.3): a host wants memory back, and waits so long for its borrowers.

The controller says which buffers nobody has (any more): those are withdrawn. When the deadline has passed, the host
revokes keys on its own: its borrowers have their mirrors. Memory goes back to the host only after its key is dead.
"""

from oslo_log import log

from pondstack.domain.errors import PondError
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.lending.client import LenderClient
from pondstack_agent.lending.lend_operation import retire
from pondstack_agent.lending.lending_report import LendingReport
from pondstack_agent.lending.model import Holding
from pondstack_agent.lending.plan import choose
from pondstack_agent.lending.records import Entries, Entry, State

LOG = log.getLogger(__name__)


class Reclaims:
    """Carries reclaims out; its caller runs one operation at a time."""

    def __init__(
        self, host: str, client: LenderClient, entries: Entries, telling: LendingReport, controller: ControllerAPI
    ) -> None:
        self._host, self._client, self._entries = host, client, entries
        self._telling, self._controller = telling, controller

    def step(self, entry: Entry) -> None:
        """Take back what can be had now; raises Unavailable to be called again, as it is while some is missing."""
        if entry.state == State.PENDING:
            holding = self._client.hold()
            if not _reached(entry, holding):
                self._take(entry, holding)
                holding = self._client.hold()
            if not _reached(entry, holding):
                return
            entry = self._entries.put(entry, state=State.TELLING, reason=_kept(holding))
        sequence = self._telling.next()
        holding = retire(self._client, self._telling)
        refused = self._telling.tell(sequence, holding)
        self._entries.put(entry, state=State.DONE, ended_mib=holding.mib, reason=refused or entry.reason)
        LOG.info("This host took memory back and lends %d MiB now", holding.mib)

    def _take(self, entry: Entry, holding: Holding) -> None:
        freed = set(self._freed(entry))
        missing = -(-(holding.mib - holding.failed_mib - entry.target_mib) // holding.buffer_mib)
        take = [item.index for item in holding.buffers if item.index in freed and not item.failed][:missing]
        if self._entries.clock() >= entry.ends_at:
            others = [item for item in holding.buffers if item.index not in take and not item.failed]
            own = choose(others, missing - len(take))
            LOG.warning("The host revokes %d buffers on its own: reclaim %s is late", len(own), entry.operation_id)
            take += own
        # In this order, whatever the controller said: never while a key lives.
        dead = self._client.revoke(holding.incarnation, take)
        self._client.withdraw(holding.incarnation, [index for index in take if index in dead])

    def _freed(self, entry: Entry) -> list[int]:
        """Ask which buffers nobody has any more; a controller that does not answer has freed none."""
        try:
            answer = self._controller.reclaim(operation_id=entry.operation_id, host=self._host, mib=entry.mib)
        except PondError as error:
            LOG.debug("Reclaim %s: %s", entry.operation_id, error)
            return []
        return [int(index) for index in answer.get("indexes", ())]


def _reached(entry: Entry, holding: Holding) -> bool:
    """Tell whether all is back that can come back: what a device holds on to goes with the lender's process only."""
    return holding.incarnation != entry.incarnation or holding.mib - holding.failed_mib <= entry.target_mib


def _kept(holding: Holding) -> str:
    if not holding.failed_mib:
        return ""
    return (
        f"{holding.failed_mib} MiB stay: the device did not end their keys ({sorted(map(int, holding.failed()))}); "
        "take back the other buffers, then end pondstack-lender on this host"
    )
