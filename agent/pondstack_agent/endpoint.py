"""RPC endpoint of pondstack-agent for pool memory: what pondstack.rpc.agent_api.AgentAPI calls.

Native threads: one lock per consumer orders what happens to it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import oslo_messaging
from oslo_log import log

from pondstack.domain.backing import FORMER_KINDS
from pondstack.domain.errors import Conflict, InUse, NotFound
from pondstack.rpc.agent_api import TAKE_UP_VERSION
from pondstack.rpc.identity.caller import caller_of
from pondstack.rpc.wire import assign_request
from pondstack_agent.drivers import HostPools
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.locks import NamedLocks
from pondstack_agent.pool.askers import Askers
from pondstack_agent.pool.attach import AttachFlow, attachment_of
from pondstack_agent.pool.housekeeper import Housekeeper
from pondstack_agent.pool.operations import UNFINISHED, Kind, Operation, Operations, Status
from pondstack_agent.pool.releases import Releases
from pondstack_agent.qemu.arrivals import Arrivals
from pondstack_agent.reporter import Reporter
from pondstack_agent.rpc_errors import answered

LOG = log.getLogger(__name__)


class AgentEndpoint:
    """The methods that others may call. Errors are of pondstack.domain.errors."""

    target = oslo_messaging.Target(version=TAKE_UP_VERSION)

    def __init__(
        self,
        *,
        host: str,
        operations: Operations,
        releases: Releases,
        attach_flow: AttachFlow,
        reporter: Reporter,
        pools: HostPools,
        epoch: EpochGuard,
        housekeeper: Housekeeper,
        askers: Askers,
        arrivals: Arrivals,
        consumers: NamedLocks,
        allocations: NamedLocks,
    ) -> None:
        """`consumers`: locks by consumer, the same as the housekeeper's; `allocations`: as the attach flow's."""
        self._host = host
        self._operations = operations
        self._releases = releases
        self._attach_flow = attach_flow
        self._reporter = reporter
        self._pools = pools
        self._epoch = epoch
        self._housekeeper = housekeeper
        self._askers = askers
        self._arrivals = arrivals
        self._consumers = consumers
        self._allocations = allocations

    @answered
    def attach(
        self, _context: Any, *, operation_id: str, backings: Sequence[str] = FORMER_KINDS, **request: Any
    ) -> dict[str, Any]:
        """Have pool memory assigned and onlined; a repetition by the same operation id goes on or answers the same.

        `request`: the fields of AssignRequest but `host`, which is this one; a source since 1.19. `backings`: the kinds
        that the caller knows, since 1.21; raises HostUnusable where it would get another.
        """
        asked = assign_request(host=self._host, **request)
        wanted = replace(asked, write_back=bool(asked.source) and self._pools.needs_write_back(asked.pool_uuid))
        self._pools.check_known(wanted.pool_uuid, backings)
        with self._consumers.holding(wanted.consumer_uuid):
            return self._attach_flow.attach(self._operations.attach(operation_id, wanted)).to_wire()

    @answered
    def detach(self, _context: Any, *, operation_id: str, consumer_uuid: str) -> bool:
        """Offline what a consumer holds; what its unfinished attaches may have got is undone in the background."""
        with self._consumers.holding(consumer_uuid):
            operation = self._operations.find(operation_id, Kind.DETACH, consumer_uuid)
            if operation is None:
                mine = tuple(item.allocation_uuid for item in self._pools.held_by(consumer_uuid))
                operation = self._operations.start(operation_id, Kind.DETACH, consumer_uuid, allocations=mine)
            if operation.status is Status.PENDING:
                # Only what was there when it was first asked for: a late repetition must not take a newer attach away.
                for allocation_uuid in operation.allocations:
                    self._releases.release(allocation_uuid)
                self._close_attaches(consumer_uuid, operation)
                self._operations.change(operation, Status.DONE)
            return bool(operation.allocations)

    def _close_attaches(self, consumer_uuid: str, detach: Operation) -> None:
        for attach in self._operations.attaches(consumer_uuid):
            grant = attach.granted
            if grant is not None and grant.allocation_uuid in detach.allocations:
                over = Conflict(f"operation {attach.operation_id} was detached meanwhile; make a new operation id")
                self._operations.end(attach, over)
            elif attach.status in UNFINISHED and attach.at <= detach.at:
                self._housekeeper.undo_soon(self._operations.change(attach, Status.CANCELLED))

    @answered
    def get_attachment(self, context: Any, *, consumer_uuid: str) -> dict[str, Any] | None:
        """Return what a consumer holds, None when nothing; raises Refused to a host that it does not move to."""
        found = self._held(consumer_uuid)
        if found is not None:
            self._askers.check(caller_of(context), consumer_uuid)
        return found

    def _held(self, consumer_uuid: str) -> dict[str, Any] | None:
        with self._consumers.holding(consumer_uuid):
            attaches = [item for item in self._operations.attaches(consumer_uuid) if item.status is Status.DONE]
            grants = {item.granted.allocation_uuid: item.granted for item in attaches if item.granted}
            for held in self._pools.held_by(consumer_uuid):
                grant = grants.get(held.allocation_uuid)
                # One that goes offline on the controller's command is attached yet, and no guest starts on it any more.
                if grant is not None and not self._releases.has(held.allocation_uuid):
                    found = attachment_of(grant, self._pools.backings(held.allocation_uuid))
                    return replace(found, heir=self._pools.heir(held.allocation_uuid)).to_wire()
        return None

    @answered
    def await_guest(self, _context: Any, *, consumer_uuid: str) -> None:
        """Wait for a guest's process, whose slices are handed over to this host, and have QEMU leave them out (1.19).

        Raises NotFound without slices of it, Conflict where they are not handed over.
        """
        found = self._held(consumer_uuid)
        if found is None:
            raise NotFound(f"host {self._host} has no slices of server {consumer_uuid}; attach them first")
        if not found["handed"]:
            raise Conflict(f"the slices of server {consumer_uuid} were not handed over: QEMU has to copy what is there")
        self._arrivals.expect(consumer_uuid)

    @answered
    def take_up(self, _context: Any, *, consumer_uuid: str) -> bool:
        """Return whether a guest that came with its slices may run here (1.21).

        The device is asked, and then the ledger, which knows whether the slices have all that the guest wrote. Raises
        NotFound, DeviceFailed, and Conflict when they have not.
        """
        with self._consumers.holding(consumer_uuid):
            mine = self._pools.held_by(consumer_uuid)
            if not mine:
                raise NotFound(f"host {self._host} has no slices of server {consumer_uuid}; it may not run here")
            tags = [item.allocation_uuid for item in mine]
            return all([self._pools.take_up(tag) and self._attach_flow.taken_up(tag) for tag in tags])

    @answered
    def offline(
        self,
        _context: Any,
        *,
        epoch: int,
        operation_id: str,
        allocation_uuid: str,
        report_sequence: int | None = None,
    ) -> bool:
        """Controller's command: offline an allocation; it stays refused, should its grant still be on the way.

        What has come online since the report that the command rests on is kept: raises InUse. False when it takes
        long: it goes on in the background, and the controller is told of the release.
        """
        self._epoch.check(epoch)
        consumer = next((i.consumer_uuid for i in self._pools.attached() if i.allocation_uuid == allocation_uuid), "")
        with self._consumers.holding(consumer or allocation_uuid), self._allocations.holding(allocation_uuid):
            self._epoch.check(epoch)  # another may lead since we wait
            if report_sequence is not None and self._operations.online_at(allocation_uuid) > report_sequence:
                raise InUse(
                    f"allocation {allocation_uuid} came online after report {report_sequence} of this host, on which "
                    "its offline rests; look again"
                )
            LOG.info("Offline %s of allocation %s by the controller", operation_id, allocation_uuid)
            return self._releases.offline(allocation_uuid)

    @answered
    def report(self, _context: Any, *, epoch: int) -> dict[str, Any]:
        """Return what is really attached now."""
        self._epoch.check(epoch)
        return self._reporter.report().to_wire()
