"""The attach of one consumer: assign, online, acknowledge. It can be repeated at every point; a failed one is undone.

The caller holds the consumer's lock.
"""

from oslo_log import log

from pondstack.domain.errors import (
    Conflict,
    DeviceFailed,
    HostUnusable,
    InUse,
    PondError,
    SlicesReturning,
    Unavailable,
)
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.wire import Attachment, Backing, Grant
from pondstack_agent.drivers import HostPools
from pondstack_agent.drivers.base import SliceNotZero
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.locks import NamedLocks
from pondstack_agent.pool.operations import Operation, Operations, Status
from pondstack_agent.pool.releases import Releases
from pondstack_agent.sequence import Sequence

LOG = log.getLogger(__name__)


class AttachFlow:
    """Brings pool memory to one host."""

    def __init__(
        self,
        *,
        host: str,
        operations: Operations,
        releases: Releases,
        pools: HostPools,
        controller: ControllerAPI,
        epoch: EpochGuard,
        sequence: Sequence,
        locks: NamedLocks,
    ) -> None:
        """`locks`: by allocation; an allocation is brought online or taken offline by who holds its lock."""
        self._host = host
        self._operations = operations
        self._releases = releases
        self._pools = pools
        self._controller = controller
        self._epoch = epoch
        self._sequence = sequence
        self._locks = locks

    def attach(self, operation: Operation) -> Attachment:
        """Carry an operation to its end from wherever it stands, and return its answer.

        Raises Unavailable when the controller does not answer, SlicesReturning while slices are on their way back:
        repeat it, or detach the consumer.
        """
        if operation.status is Status.OVER:
            raise operation.failure()
        if operation.status is Status.CANCELLED:
            raise Conflict(f"operation {operation.operation_id} was cancelled by a detach; make a new operation id")
        if operation.status is Status.PENDING:
            operation = self._assign(operation)
        return self._online(operation)

    def taken_up(self, allocation_uuid: str) -> bool:
        """Return whether the ledger has an allocation, whole, as this host's; raises NotFound, Conflict."""
        return self._controller.take_up(allocation_uuid=allocation_uuid, host=self._host)

    def undo(self, operation: Operation) -> None:
        """Give back what an unfinished operation may have got; raises Unavailable, InUse: try again later."""
        if operation.grant is None:
            # Only the controller knows whether the slices were assigned; the same operation id gets the same answer.
            try:
                answer = self._request_grant(operation)
                operation = self._operations.change(operation, operation.status, grant=answer.to_wire())
            except SlicesReturning as error:  # the controller has answered: nothing was assigned to it
                self._operations.end(operation, error)
                return
            except Unavailable:
                raise
            except PondError as error:
                self._operations.end(operation, error)
                return
        grant = operation.granted
        assert grant is not None
        self._releases.release(grant.allocation_uuid)
        self._operations.end(
            operation, Conflict(f"operation {operation.operation_id} was undone; make a new operation id")
        )

    def _assign(self, operation: Operation) -> Operation:
        if operation.request["pool_uuid"] not in self._pools.pools():
            raise self._failed(
                operation,
                HostUnusable(
                    f"host {self._host} does not reach pool {operation.request['pool_uuid']}; check its device and the "
                    "agent's configuration"
                ),
            )
        try:
            grant = self._request_grant(operation)
        except Unavailable:
            raise  # It may have been assigned, or may be soon: the same operation goes on, or is undone later.
        except PondError as error:
            raise self._failed(operation, error) from None
        return self._operations.change(operation, Status.GRANTED, grant=grant.to_wire())

    def _request_grant(self, operation: Operation) -> Grant:
        return self._controller.assign(operation.operation_id, operation.assign_request(self._host))

    def _online(self, operation: Operation) -> Attachment:
        grant = operation.granted
        assert grant is not None
        try:
            if operation.status is Status.GRANTED:
                operation, grant = self._current(operation, grant)
                operation, backings = self._bring_online(operation, grant)
                self._acknowledge(operation, grant)
                self._operations.change(operation, Status.DONE)
            else:
                self._releases.refuse_released(grant.allocation_uuid)
                backings = self._pools.backings(grant.allocation_uuid)
        except Unavailable as error:
            if isinstance(error, DeviceFailed):
                raise self._undo_failed(operation, grant, error) from None
            raise
        except PondError as error:
            raise self._undo_failed(operation, grant, error) from None
        return attachment_of(grant, backings)

    def _bring_online(self, operation: Operation, grant: Grant) -> tuple[Operation, tuple[Backing, ...]]:
        """Online a grant's slices, and record the number of the first report that can tell of them.

        It waits while the controller has the same allocation taken offline, which comes first or is refused.
        """
        with self._locks.holding(grant.allocation_uuid):
            self._releases.refuse_released(grant.allocation_uuid)
            self._epoch.check(grant.epoch)
            backings = self._pools.attach(grant)
            return self._operations.change(operation, Status.GRANTED, online_at=self._sequence.next()), backings

    def _current(self, operation: Operation, grant: Grant) -> tuple[Operation, Grant]:
        """Have the present leader renew a grant of a former one; it answers the same operation with the same slices.

        A fail-over between a grant and its use does not fail the attach.
        """
        if grant.epoch >= self._epoch.seen:
            return operation, grant
        renewed = self._request_grant(operation)
        if (renewed.allocation_uuid, renewed.extents) != (grant.allocation_uuid, grant.extents):
            raise Conflict(f"operation {operation.operation_id} was granted other slices; make a new operation id")
        return self._operations.change(operation, Status.GRANTED, grant=renewed.to_wire()), renewed

    def _acknowledge(self, operation: Operation, grant: Grant) -> None:
        self._controller.acknowledge(
            operation_id=operation.operation_id, allocation_uuid=grant.allocation_uuid, host=self._host
        )

    def _undo_failed(self, operation: Operation, grant: Grant, error: PondError) -> PondError:
        LOG.warning("Attach %s of consumer %s failed: %s", operation.operation_id, operation.consumer_uuid, error)
        not_zero: tuple[int, ...] = ()
        if isinstance(error, SliceNotZero):
            not_zero, error = error.indexes, DeviceFailed(error.message)
        try:
            self._releases.release(grant.allocation_uuid, not_zero)
        except InUse as in_use:
            LOG.error("It cannot be undone: %s", in_use)
        return self._failed(operation, error)

    def _failed(self, operation: Operation, error: PondError) -> PondError:
        self._operations.end(operation, error)
        return error


def attachment_of(grant: Grant, backings: tuple[Backing, ...]) -> Attachment:
    """Return the answer to an attach."""
    return Attachment(
        allocation_uuid=grant.allocation_uuid,
        consumer_uuid=grant.consumer_uuid,
        pool_uuid=grant.pool_uuid,
        pool_name=grant.pool_name,
        pool_mib=sum(backing.size_mib for backing in backings),
        epoch=grant.epoch,
        extents=grant.extents,
        backings=backings,
        handed=grant.handed,
    )
