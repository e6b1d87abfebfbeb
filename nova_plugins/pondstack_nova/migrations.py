"""What binds the split of an instance that is moved: what it runs with, and whether it gets another flavor.

A live migration keeps the split that the guest runs with: its NUMA nodes cannot change while it runs. What it runs with
is what Placement holds for it, under the migration's UUID while the migration lasts. That needs no answer of the
service, so that a guest which fell back to all local, or a day without controller, is no obstacle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import nova.context
from nova import exception, objects
from nova.compute import task_states
from nova.scheduler.client import report
from oslo_log import log as logging

from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.sizing import NAMESPACE
from pondstack.domain.units import RESOURCE_CLASS

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Move:
    """A move. `running_local_mib`: what a guest that goes on running has beside pool memory, None: it starts anew.

    `resized`: it gets another flavor, so that the split which it has says nothing. `holder`: who holds the claim of a
    guest that starts anew, as far as it has one.
    """

    running_local_mib: int | None = None
    resized: bool = False
    holder: str = ""


def find(ctxt: Any, spec: Any) -> Move | None:
    """Return the move that a request is for; None when it is for none."""
    destination = spec.requested_destination if "requested_destination" in spec else None
    # Moves are bound to the instance's cell; boots are not, which spares them the look into the database.
    if destination is None or "cell" not in destination or destination.cell is None:
        return None
    elevated = ctxt.elevated()
    try:
        with nova.context.target_cell(elevated, destination.cell) as cell_context:
            instance = objects.Instance.get_by_uuid(cell_context, spec.instance_uuid, expected_attrs=["flavor"])
            holder, resized = _holder(cell_context, instance), is_resized(instance.flavor, spec.flavor)
            mover = _mover(cell_context, instance) if holder is None else ""
    except exception.InstanceNotFound:
        return None
    if holder is None:
        return Move(resized=resized, holder=mover)
    held = report.report_client_singleton().get_allocs_for_consumer(elevated, holder)["allocations"]
    return Move(running_local_mib=local_mib(held))


def held_pool_mib(ctxt: Any, move: Move, memory_mib: int) -> int | None:
    """Return the pool memory that Placement holds for a guest of this size that is moved; None when it holds none."""
    held = report.report_client_singleton().get_allocs_for_consumer(ctxt.elevated(), move.holder)["allocations"]
    pool = sum(item["resources"].get(RESOURCE_CLASS, 0) for item in held.values())
    local = local_mib(held)
    return int(pool) if pool and local and pool + local == memory_mib else None


def is_resized(old: Any, new: Any) -> bool:
    """Say whether two flavors differ in what splits follow: size and `pond:` specs."""
    return _key(old) != _key(new)


def local_mib(allocations: Mapping[str, Any]) -> int | None:
    """Return a consumer's claim beside pool memory: its hosts' memory and remote memory; None when there is none."""
    held = [item["resources"] for item in allocations.values()]
    own = [resources["MEMORY_MB"] for resources in held if "MEMORY_MB" in resources]
    remote = sum(resources.get(REMOTE_CLASS, 0) for resources in held)
    return int(sum(own) + remote) if own else None


def _key(flavor: Any) -> tuple[int, int, dict[str, str]]:
    specs = (flavor.extra_specs if "extra_specs" in flavor else None) or {}
    return flavor.memory_mb, flavor.vcpus, {key: value for key, value in specs.items() if key.startswith(NAMESPACE)}


def _mover(cell_context: Any, instance: Any) -> str:
    """Return the consumer that holds the claim of an instance that is moved cold: a migration's, or its own."""
    found = objects.MigrationList.get_by_filters(
        cell_context, {"instance_uuid": instance.uuid, "migration_type": "migration", "status": "pre-migrating"}
    )
    newest = max(found, key=lambda migration: migration.id, default=None)
    return str(newest.uuid if newest is not None else instance.uuid)


def _holder(cell_context: Any, instance: Any) -> str | None:
    """Return the consumer that holds a live-migrating instance's allocations at the source; None when it is no such."""
    if instance.task_state != task_states.MIGRATING:
        return None
    found = objects.MigrationList.get_by_filters(
        cell_context,
        {"instance_uuid": instance.uuid, "migration_type": "live-migration", "status": ["accepted", "preparing"]},
    )
    newest = max(found, key=lambda migration: migration.id, default=None)
    return newest.uuid if newest is not None else None
