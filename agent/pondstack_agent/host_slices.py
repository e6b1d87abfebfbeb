"""RPC endpoint of pondstack-agent for slices that the host holds for itself, and for tiering (agent_host_api)."""

from typing import Any

import oslo_messaging

from pondstack.domain.errors import BadRequest
from pondstack.domain.purpose import Purpose
from pondstack.domain.requests import AssignRequest
from pondstack.rpc.agent_host_api import HOST_SLICES_VERSION
from pondstack.rpc.wire import assign_request
from pondstack_agent.drivers import HostPools
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.pool.attach import AttachFlow
from pondstack_agent.pool.build import PoolMemory
from pondstack_agent.pool.operations import Operation, Status
from pondstack_agent.rpc_errors import answered
from pondstack_agent.tiering.switch import TieringSwitch


class HostSlicesEndpoint:
    """The methods that the controller calls. A host slice goes offline by AgentEndpoint.offline, as all others do."""

    target = oslo_messaging.Target(version=HOST_SLICES_VERSION)

    def __init__(
        self, host: str, pool: PoolMemory, pools: HostPools, epoch: EpochGuard, tiering: TieringSwitch
    ) -> None:
        self._host, self._epoch, self._pools, self._tiering = host, epoch, pools, tiering
        self._operations, self._locks = pool.operations, pool.consumers
        self._flow: AttachFlow = pool.attach_flow

    @answered
    def hold(self, _context: Any, *, epoch: int, operation_id: str, **request: Any) -> dict[str, Any]:
        """Get a host slice and bring it online, or go on with what an earlier command began for this consumer."""
        self._epoch.check(epoch)
        wanted = assign_request(host=self._host, **request)
        if wanted.purpose is Purpose.GUEST:
            raise BadRequest("guests' slices are attached, not held; call attach")
        with self._locks.holding(wanted.consumer_uuid):
            self._epoch.check(epoch)  # another may lead since we wait
            return self._flow.attach(self._begun(wanted) or self._operations.attach(operation_id, wanted)).to_wire()

    @answered
    def set_tiering(self, _context: Any, *, epoch: int, on: bool | None) -> None:
        """Switch demotion and promotion on or off, until another order; None: as the agent is configured."""
        self._epoch.check(epoch)
        self._tiering.order(on)

    def _begun(self, wanted: AssignRequest) -> Operation | None:
        """Return the operation that this one would repeat: each command has an id of its own."""
        held = {item.allocation_uuid for item in self._pools.held_by(wanted.consumer_uuid)}
        for item in reversed(self._operations.attaches(wanted.consumer_uuid)):
            here = item.granted is not None and item.granted.allocation_uuid in held
            if item.status in (Status.PENDING, Status.GRANTED) or (item.status is Status.DONE and here):
                return item
        return None
