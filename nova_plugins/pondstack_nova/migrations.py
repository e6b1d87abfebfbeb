"""Live migrations keep the split that the guest runs with: its NUMA nodes cannot change while it runs.

What it runs with is what Placement holds for it, under the migration's UUID while the migration lasts. That needs no
answer of the service, so that a guest which fell back to all local, or a day without controller, is no obstacle.
"""

from collections.abc import Mapping
from typing import Any

import nova.context
from nova import exception, objects
from nova.compute import task_states
from nova.scheduler.client import report
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def running_local_mib(ctxt: Any, spec: Any) -> int | None:
    """Return the local memory in MiB of the running guest that this request moves; None when it moves none."""
    destination = spec.requested_destination if "requested_destination" in spec else None
    # Moves are bound to the instance's cell; boots are not, which spares them the look into the database.
    if destination is None or "cell" not in destination or destination.cell is None:
        return None
    elevated = ctxt.elevated()
    try:
        with nova.context.target_cell(elevated, destination.cell) as cell_context:
            consumer = _holder(cell_context, spec.instance_uuid)
    except exception.InstanceNotFound:
        return None
    if consumer is None:
        return None
    return local_mib(report.report_client_singleton().get_allocs_for_consumer(elevated, consumer)["allocations"])


def local_mib(allocations: Mapping[str, Any]) -> int | None:
    """Return the MEMORY_MB among a consumer's allocations; None when there is none."""
    amounts = [held["resources"]["MEMORY_MB"] for held in allocations.values() if "MEMORY_MB" in held["resources"]]
    return int(sum(amounts)) if amounts else None


def _holder(cell_context: Any, instance_uuid: str) -> str | None:
    """Return the consumer that holds a live-migrating instance's allocations at the source; None when it is no such."""
    instance = objects.Instance.get_by_uuid(cell_context, instance_uuid)
    if instance.task_state != task_states.MIGRATING:
        return None
    found = objects.MigrationList.get_by_filters(
        cell_context,
        {"instance_uuid": instance_uuid, "migration_type": "live-migration", "status": ["accepted", "preparing"]},
    )
    newest = max(found, key=lambda migration: migration.id, default=None)
    return newest.uuid if newest is not None else None
