"""The way back of memory whose release began. Pure; part of pondstack.controller.reconcile.rules.rules.

A live migration moves its source's claim to another name. When the source's agent is silent meanwhile, the release of
the memory begins; when the migration then fails, the guest runs on with it and the claim is back.
"""

from pondstack.controller.reconcile import findings as act
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.model import indexes_of
from pondstack.domain.transitions import reinstatable


def claimed_again(world: Observation, uuid: str) -> Finding | None:
    """Return what takes an allocation back, None unless Placement has its claim and a later report lists all of it."""
    aged = world.rack.allocations.get(uuid)
    if aged is None or world.claims is None or not world.claimed[uuid] or world.fenced(aged.item.host):
        return None
    host, mine = aged.item.host, world.slices_of.get(uuid, ())
    if world.stuck(host, uuid) is not None:
        return None  # half of it may be offline, and its host lets nobody use the rest
    if not reinstatable([slice_.item for slice_ in mine]) or not _listed(world, host, uuid):
        return None
    detail = f"its release had begun; it is claimed again and {host} still holds it"
    return Finding("claimed_again", Severity.WARNING, f"allocation {uuid}", detail, act.Reinstate(uuid), host=host)


def _listed(world: Observation, host: str, uuid: str) -> bool:
    mine = world.slices_of[uuid]
    if world.report_after(host, min(slice_.age_seconds for slice_ in mine)) is None:
        return False
    held = world.attached[host].get(uuid)
    if held is None:
        return False
    listed = {(held.pool_uuid, index) for index in indexes_of(held.extents)}
    return listed == {(slice_.item.pool_uuid, slice_.item.index) for slice_ in mine}
