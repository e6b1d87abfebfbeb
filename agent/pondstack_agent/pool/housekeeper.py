"""What the agent does with pool memory when no request waits for it: recover, undo, release, forget, move back."""

from oslo_log import log

from pondstack.domain.errors import Conflict, PondError, Unavailable
from pondstack_agent.drivers import HostPools
from pondstack_agent.executor import Executor
from pondstack_agent.locks import NamedLocks
from pondstack_agent.misplaced.pages import MisplacedPages
from pondstack_agent.mitigation.mitigations import Mitigations
from pondstack_agent.pool.attach import AttachFlow
from pondstack_agent.pool.operations import UNFINISHED, Kind, Operation, Operations, Status
from pondstack_agent.pool.releases import Releases

LOG = log.getLogger(__name__)


class Housekeeper:
    """Keeps the agent's records of pool memory in order. `locks`: by consumer, those of AgentEndpoint."""

    def __init__(
        self,
        *,
        operations: Operations,
        releases: Releases,
        attach_flow: AttachFlow,
        pools: HostPools,
        executor: Executor,
        mitigations: Mitigations,
        misplaced: MisplacedPages,
        locks: NamedLocks,
    ) -> None:
        self._operations = operations
        self._releases = releases
        self._attach_flow = attach_flow
        self._pools = pools
        self._executor = executor
        self._mitigations = mitigations
        self._misplaced = misplaced
        self._locks = locks

    def recover(self) -> None:
        """Bring a former life's half-done releases to an end; its attaches wait for their callers, then are undone."""
        self._releases.recover()
        self._mitigations.recover(self.release_unused)

    def stop(self) -> None:
        """The agent ends: stop moving pages at the next chunk."""
        self._mitigations.stop()
        self._misplaced.stop()

    def tidy(self, unanswered_seconds: float, keep_seconds: float) -> None:
        """Undo what nobody came back for, forget what nobody can repeat, move back pages that others' leaving moved."""
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
        self._mitigations.tidy(keep_seconds, self.release_unused)
        self._misplaced.maintain(unanswered_seconds)

    def undo_soon(self, operation: Operation) -> None:
        """Give back, in the background, what an unfinished attach may have got."""
        self._executor.submit(self._undo, operation)

    def release_unused(self, consumer_uuid: str, allocation_uuid: str) -> None:
        """Release an allocation whose guest runs on without it, after a mitigation."""
        with self._locks.holding(consumer_uuid):
            if all(item.allocation_uuid != allocation_uuid for item in self._pools.held_by(consumer_uuid)):
                return  # it was detached meanwhile
            self._pools.vacate(allocation_uuid)
            self._releases.release(allocation_uuid)
            for attach in self._operations.attaches(consumer_uuid):
                if attach.granted is not None and attach.granted.allocation_uuid == allocation_uuid:
                    over = Conflict(
                        f"the guest of operation {attach.operation_id} was mitigated; make a new operation id"
                    )
                    self._operations.end(attach, over)

    def _undo(self, stale: Operation) -> None:
        with self._locks.holding(stale.consumer_uuid):
            operation = self._operations.find(stale.operation_id, Kind.ATTACH, stale.consumer_uuid, stale.request)
            if operation is None or operation.status not in UNFINISHED or operation.at != stale.at:
                return  # somebody carried it on meanwhile
            try:
                self._attach_flow.undo(operation)
                LOG.info("Undid attach %s of consumer %s", operation.operation_id, operation.consumer_uuid)
            except Unavailable as error:
                LOG.debug("Attach %s is undone later: %s", operation.operation_id, error)
            except PondError as error:
                LOG.warning("Attach %s cannot be undone yet: %s", operation.operation_id, error)
