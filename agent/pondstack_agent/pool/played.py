"""Guests with pool memory here, as the agent's own records know them: for telemetry of guests without memory."""

from pondstack.domain.model import indexes_of
from pondstack.domain.purpose import Purpose
from pondstack_agent.drivers import HostPools
from pondstack_agent.pool.operations import Kind, Operations, Status
from pondstack_agent.telemetry.synthetic import PlayedGuest


def played_guests(operations: Operations, pools: HostPools) -> list[PlayedGuest]:
    """Return who has pool memory on this host, and how large they are; the size is known by how it was asked for."""
    attached = {item.allocation_uuid for item in pools.attached() if item.purpose == Purpose.GUEST}
    found = {}
    for operation in operations.all():
        grant = operation.granted
        if operation.kind is not Kind.ATTACH or operation.status is not Status.DONE or grant is None:
            continue
        memory_mib = int(operation.request.get("guest_mib", 0))
        pool_mib = len(list(indexes_of(grant.extents))) * grant.slice_mib
        if grant.allocation_uuid in attached and memory_mib >= pool_mib:
            found[operation.consumer_uuid] = PlayedGuest(
                consumer_uuid=operation.consumer_uuid,
                project_id=str(operation.request.get("project_id", "")),
                memory_mib=memory_mib,
                pool_mib=pool_mib,
                age_seconds=operations.age_seconds(operation),
            )
    return list(found.values())
