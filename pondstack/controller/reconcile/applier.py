"""Executes the reconciler's actions. Each is idempotent; what fails is found again at the next round."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, assert_never, cast
from uuid import uuid4

from oslo_log import log

from pondstack.controller.lending.lenders import call_agent, take_back
from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.controller.pool.offline import take_offline
from pondstack.controller.pool.remover import Remover
from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.actions import Action
from pondstack.controller.reconcile.findings import Finding
from pondstack.db.read.reader import SqlReader
from pondstack.domain.errors import InUse, NotFound, NotLeader, PondError
from pondstack.domain.lending import Buffer, Lender, LenderKind
from pondstack.domain.model import Extent
from pondstack.domain.states import SliceState
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI

LOG = log.getLogger(__name__)

KNOWN = (
    actions.Offline
    | actions.Acknowledge
    | actions.BeginRelease
    | actions.Reinstate
    | actions.QuarantineAllocation
    | actions.FailAllocation
    | actions.FenceSlices
    | actions.QuarantineSlices
    | actions.AuditSlices
    | actions.Regrant
    | actions.EndPermissions
    | actions.TakeDelegation
    | actions.RevokeKeys
    | actions.LetGo
    | actions.EndSwap
    | actions.AskBack
    | actions.RemoveHost
    | actions.LeaveAggregate
    | actions.RemoveProvider
)


class Applier:
    """Carries findings' actions out.

    `remover` removes what was left behind; `notify` wakes the notifier of guests whose memory failed.
    """

    def __init__(
        self,
        ledger: Ledger,
        reader: SqlReader,
        devices: DeviceRegistry,
        agents: AgentAPI,
        remover: Remover,
        notify: Callable[[], object] = lambda: None,
    ) -> None:
        self._ledger = ledger
        self._reader = reader
        self._devices = devices
        self._agents = agents
        self._remover = remover
        self._notify = notify

    def apply(self, finding: Finding) -> str:
        """Execute the finding's action and return how it went, for people. Raises NotLeader."""
        action = finding.action
        if action is None:
            return ""
        try:
            changed = self._execute(action)
        except NotLeader:
            raise
        except InUse as error:
            LOG.info("%s: %s; not done: %s", finding.code, finding.subject, error)
            return f"not done ({action}): {error}"
        except PondError as error:
            LOG.warning("%s: %s; failed: %s", finding.code, finding.subject, error)
            return f"failed ({action}): {error}"
        if not changed:
            return f"no longer needed: {action}"
        LOG.info("%s: %s: %s; done: %s", finding.code, finding.subject, finding.detail, action)
        return f"done: {action}"

    def _execute(self, action: Action) -> bool:
        """Return whether it changed anything."""
        ledger = self._ledger
        known = cast(KNOWN, action)
        match known:
            case actions.Offline():
                return self._offline(known)
            case actions.Acknowledge(host, allocation_uuid):
                ledger.slices.acknowledge(str(uuid4()), allocation_uuid, host)
                return True
            case actions.BeginRelease(allocation_uuid, reason):
                return ledger.slices.begin_release(allocation_uuid, reason) > 0
            case actions.Reinstate(allocation_uuid):
                return ledger.slices.reinstate(allocation_uuid) > 0
            case actions.QuarantineAllocation(allocation_uuid, cause, detail):
                return ledger.slices.quarantine_allocation(allocation_uuid, cause, detail) > 0
            case actions.FailAllocation(allocation_uuid, failure, about, notify):
                changed = ledger.failures.fail_allocation(allocation_uuid, failure, about, notify=notify)
                self._notify()
                return changed > 0
            case actions.FenceSlices(host, pool_uuid, indexes):
                self._devices.get(pool_uuid).fence(host, indexes, epoch=ledger.epoch)
                return ledger.slices.audit(pool_uuid, indexes, f"the device keeps the fenced host {host} out") > 0
            case actions.QuarantineSlices(pool_uuid, indexes, cause, detail, host, allocation_uuid, failure):
                changed = ledger.slices.quarantine(
                    pool_uuid, indexes, cause, detail, failure=failure, host=host, allocation_uuid=allocation_uuid
                )
                return changed > 0
            case actions.AuditSlices(pool_uuid, indexes, reason):
                return ledger.slices.audit(pool_uuid, indexes, reason) > 0
            case actions.Regrant(allocation_uuid):
                return self._regrant(allocation_uuid)
            case actions.EndPermissions(pool_uuid, indexes, tag):
                self._devices.get(pool_uuid).revoke(indexes, tag=tag, epoch=ledger.epoch)
                return True
            case actions.TakeDelegation():
                lender = Lender(known.host, known.incarnation, LenderKind(known.kind), known.buffer_mib)
                ledger.buffers.delegate(lender, known.sequence, dict(known.offsets_mib))
                return True
            case actions.RevokeKeys() | actions.LetGo():
                return self._command(known)
            case actions.EndSwap(host, consumer_uuid, loans, reason):
                return self._end_swap(host, consumer_uuid, loans, reason)
            case actions.AskBack(allocation_uuid, reason, only):
                asked = ledger.loans.ask_back(allocation_uuid, reason, only) > 0
                return self._end_inheritance(allocation_uuid, only) or asked
            case actions.RemoveHost(host):
                self._remover.remove_host(host, str(uuid4()))
                return True
            case actions.LeaveAggregate(host, provider, aggregate):
                return self._remover.leave_aggregate(host, provider, aggregate)
            case actions.RemoveProvider(provider):
                return self._remover.remove_provider(provider)
            case _:
                assert_never(known)

    def _offline(self, action: actions.Offline) -> bool:
        return take_offline(
            self._ledger, self._agents, action.host, action.allocation_uuid, report_sequence=action.report_sequence
        )

    def _command(self, action: actions.RevokeKeys | actions.LetGo) -> bool:
        about: dict[str, Any] = {"epoch": self._ledger.epoch, "incarnation": action.incarnation}
        if isinstance(action, actions.RevokeKeys):
            ended = dict(action.generations)
            call_agent(
                action.host, lambda: self._agents.revoke(action.host, indexes=list(ended), generations=ended, **about)
            )
        else:
            about |= {"allocation_uuid": action.allocation_uuid, "lender": action.lender}
            call_agent(action.host, lambda: self._agents.give_back(action.host, indexes=list(action.indexes), **about))
        return True

    def _end_inheritance(self, allocation_uuid: str, only: Collection[tuple[str, int]] | None) -> bool:
        """Have a borrower let go of what is being handed over to it: by its own word that stays with its owner."""
        host = next((item.host for item in self._ledger.loans.allocations() if item.uuid == allocation_uuid), "")
        lives: dict[str, list[Buffer]] = {}
        for item in self._ledger.buffers.find() if host else ():
            if item.heir == allocation_uuid and (only is None or (item.incarnation, item.index) in only):
                lives.setdefault(item.incarnation, []).append(item)
        for held in lives.values():
            call_agent(host, partial(take_back, self._ledger, self._agents, host, allocation_uuid, held))
        return bool(lives)

    def _end_swap(self, host: str, consumer_uuid: str, loans: Sequence[str], reason: str) -> bool:
        """The agent first: it may say that the instance runs. What it is slow to give back is asked for, too."""
        epoch = self._ledger.epoch
        ended = call_agent(host, lambda: self._agents.end_swap(host, epoch=epoch, consumer_uuid=consumer_uuid))
        for uuid in loans:
            self._ledger.loans.ask_back(uuid, reason)
        return ended

    def _regrant(self, allocation_uuid: str) -> bool:
        try:
            item = self._reader.allocation(allocation_uuid)
        except NotFound:
            return False  # released meanwhile
        if item.state not in (SliceState.ASSIGNING, SliceState.ONLINE):
            return False  # set aside meanwhile: nobody is let in
        extents = [Extent(extent["start"], extent["count"]) for extent in item.extents]
        self._devices.get(item.pool_uuid).grant(item.host, extents, tag=item.uuid, epoch=self._ledger.epoch)
        return True
