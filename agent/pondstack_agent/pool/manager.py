"""What the agent does when it is called. Native threads: one lock per consumer orders what happens to it."""

from typing import Any

from oslo_log import log

from pondstack.domain.errors import Conflict, InUse, PondError, Unavailable
from pondstack.rpc.wire import Attached, Attachment, Mitigation, Report, assign_request
from pondstack_agent.drivers import HostPools
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.locks import NamedLocks
from pondstack_agent.mitigation.mitigations import Mitigations
from pondstack_agent.pool.attach import AttachFlow, attachment_of
from pondstack_agent.pool.operations import UNFINISHED, Kind, Operation, Operations, Status
from pondstack_agent.pool.releases import Executor, Releases
from pondstack_agent.reporter import Reporter

LOG = log.getLogger(__name__)


class AgentManager:
    """What one host does with pool memory. Errors are of pondstack.domain.errors."""

    def __init__(
        self,
        *,
        host: str,
        operations: Operations,
        releases: Releases,
        attaching: AttachFlow,
        reporting: Reporter,
        pools: HostPools,
        epoch: EpochGuard,
        executor: Executor,
        mitigations: Mitigations,
        locks: NamedLocks,
    ) -> None:
        """`locks`: by allocation, those of `attaching`."""
        self._host = host
        self._operations = operations
        self._releases = releases
        self._attaching = attaching
        self._reporting = reporting
        self._pools = pools
        self._epoch = epoch
        self._executor = executor
        self._mitigations = mitigations
        self._locks = NamedLocks()
        self._by_allocation = locks

    def attach(self, *, operation_id: str, **request: Any) -> Attachment:
        """Have pool memory assigned and onlined; a repetition by the same operation id goes on or answers the same.

        `request`: the fields of AssignRequest but `host`, which is this one.
        """
        wanted = assign_request(host=self._host, **request)
        with self._locks.holding(wanted.consumer_uuid):
            return self._attaching.attach(self._operations.attach(operation_id, wanted))

    def detach(self, *, operation_id: str, consumer_uuid: str) -> bool:
        """Offline what a consumer holds; what its unfinished attaches may have got is undone in the background."""
        with self._locks.holding(consumer_uuid):
            operation = self._operations.find(operation_id, Kind.DETACH, consumer_uuid)
            if operation is None:
                mine = tuple(item.allocation_uuid for item in self._held_by(consumer_uuid))
                operation = self._operations.start(operation_id, Kind.DETACH, consumer_uuid, allocations=mine)
            if operation.status is Status.PENDING:
                # Only what was there when it was first asked for: a late repetition must not take a newer attach away.
                for allocation_uuid in operation.allocations:
                    self._releases.release(allocation_uuid)
                self._close_attaches(consumer_uuid, operation)
                self._operations.change(operation, Status.DONE)
            return bool(operation.allocations)

    def get_attachment(self, *, consumer_uuid: str) -> Attachment | None:
        """Return what a consumer holds, None when nothing."""
        with self._locks.holding(consumer_uuid):
            attaches = [item for item in self._operations.attaches(consumer_uuid) if item.status is Status.DONE]
            grants = {item.granted.allocation_uuid: item.granted for item in attaches if item.granted}
            for held in self._held_by(consumer_uuid):
                grant = grants.get(held.allocation_uuid)
                if grant is not None:
                    return attachment_of(grant, self._pools.backings(held.allocation_uuid))
        return None

    def offline(
        self, *, epoch: int, operation_id: str, allocation_uuid: str, report_sequence: int | None = None
    ) -> bool:
        """Controller's command: offline an allocation; it stays refused, should its grant still be on the way.

        What has come online since the report that the command rests on is kept: raises InUse. False when it takes
        long: it goes on in the background, and the controller is told of the release.
        """
        self._epoch.check(epoch)
        consumer = next((i.consumer_uuid for i in self._pools.attached() if i.allocation_uuid == allocation_uuid), "")
        with self._locks.holding(consumer or allocation_uuid), self._by_allocation.holding(allocation_uuid):
            if report_sequence is not None and self._operations.online_at(allocation_uuid) > report_sequence:
                raise InUse(
                    f"allocation {allocation_uuid} came online after report {report_sequence} of this host, on which "
                    "its offline rests; look again"
                )
            LOG.info("Offline %s of allocation %s by the controller", operation_id, allocation_uuid)
            return self._releases.offline(allocation_uuid)

    def report(self, *, epoch: int) -> Report:
        """Return what is really attached now."""
        self._epoch.check(epoch)
        return self._reporting.report()

    def mitigate(self, *, epoch: int, operation_id: str, consumer_uuid: str) -> Mitigation:
        """Controller's command: begin to move all pool pages of a running guest to local memory, then release them."""
        self._epoch.check(epoch)
        with self._locks.holding(consumer_uuid):
            return self._mitigations.begin(operation_id, consumer_uuid, self._leave)

    def get_mitigation(self, *, consumer_uuid: str) -> Mitigation | None:
        """Return how far a guest's newest mitigation is."""
        return self._mitigations.progress(consumer_uuid)

    def abort_mitigation(self, *, epoch: int, consumer_uuid: str) -> Mitigation:
        """Controller's command: stop a mitigation at its next chunk."""
        self._epoch.check(epoch)
        return self._mitigations.abort(consumer_uuid)

    def stop(self) -> None:
        """The agent ends: stop mitigations at their next chunk."""
        self._mitigations.stop()

    def recover(self) -> None:
        """Bring a former life's half-done releases to an end; its attaches wait for their callers, then are undone."""
        self._releases.recover()
        self._mitigations.recover(self._leave)

    def tidy(self, unanswered_seconds: float, keep_seconds: float) -> None:
        """Undo what nobody came back for, forget what nobody can repeat."""
        attached = {item.allocation_uuid for item in self._pools.attached()}
        for operation in self._operations.all():
            age = self._operations.age_seconds(operation)
            if operation.kind is Kind.ATTACH and operation.status in UNFINISHED:
                if operation.status is Status.CANCELLED or age > unanswered_seconds:
                    self._undo(operation)
            elif age > keep_seconds and not (operation.granted and operation.granted.allocation_uuid in attached):
                self._operations.forget(operation)
        self._releases.retry(unanswered_seconds)
        self._releases.prune(keep_seconds)
        self._mitigations.tidy(keep_seconds, self._leave)

    def _leave(self, consumer_uuid: str, allocation_uuid: str) -> None:
        """Give back an allocation whose guest runs on without it."""
        with self._locks.holding(consumer_uuid):
            if all(item.allocation_uuid != allocation_uuid for item in self._held_by(consumer_uuid)):
                return  # it was detached meanwhile
            self._pools.vacate(allocation_uuid)
            self._releases.release(allocation_uuid)
            for attach in self._operations.attaches(consumer_uuid):
                if attach.granted is not None and attach.granted.allocation_uuid == allocation_uuid:
                    over = Conflict(
                        f"the guest of operation {attach.operation_id} was mitigated; make a new operation id"
                    )
                    self._operations.end(attach, over)

    def _held_by(self, consumer_uuid: str) -> list[Attached]:
        return [item for item in self._pools.attached() if item.consumer_uuid == consumer_uuid]

    def _close_attaches(self, consumer_uuid: str, detach: Operation) -> None:
        for attach in self._operations.attaches(consumer_uuid):
            grant = attach.granted
            if grant is not None and grant.allocation_uuid in detach.allocations:
                over = Conflict(f"operation {attach.operation_id} was detached meanwhile; make a new operation id")
                self._operations.end(attach, over)
            elif attach.status in UNFINISHED and attach.at <= detach.at:
                cancelled = self._operations.change(attach, Status.CANCELLED)
                self._executor.submit(self._undo, cancelled)

    def _undo(self, stale: Operation) -> None:
        with self._locks.holding(stale.consumer_uuid):
            operation = self._operations.find(stale.operation_id, Kind.ATTACH, stale.consumer_uuid, stale.request)
            if operation is None or operation.status not in UNFINISHED or operation.at != stale.at:
                return  # somebody carried it on meanwhile
            try:
                self._attaching.undo(operation)
                LOG.info("Undid attach %s of consumer %s", operation.operation_id, operation.consumer_uuid)
            except Unavailable as error:
                LOG.debug("Attach %s is undone later: %s", operation.operation_id, error)
            except PondError as error:
                LOG.warning("Attach %s cannot be undone yet: %s", operation.operation_id, error)
