"""The way back of memory whose release began. Pure; part of pondstack.controller.reconcile.rules.rules.

A live migration moves its source's claim to another name. When the source's agent is silent meanwhile, the release of
the memory begins; when the migration then fails, the guest runs on with it and the claim is back.
"""

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.model import indexes_of
from pondstack.domain.transitions import reinstatable


def reinstate(observation: Observation, uuid: str) -> Finding | None:
    """Return what takes an allocation back, None unless Placement has its claim and a later report lists all of it."""
    aged = observation.rack.allocations.get(uuid)
    if (
        aged is None
        or observation.claims is None
        or not observation.claimed[uuid]
        or observation.fenced(aged.item.host)
    ):
        return None
    host, mine = aged.item.host, observation.slices_of.get(uuid, ())
    if observation.stuck(host, uuid) is not None:
        return None  # half of it may be offline, and its host lets nobody use the rest
    if not reinstatable([slice_.item for slice_ in mine]) or not _listed(observation, host, uuid):
        return None
    detail = f"its release had begun; it is claimed again and {host} still holds it"
    return Finding("claimed_again", Severity.WARNING, f"allocation {uuid}", detail, actions.Reinstate(uuid), host=host)


def _listed(observation: Observation, host: str, uuid: str) -> bool:
    mine = observation.slices_of[uuid]
    if observation.report_after(host, min(slice_.age_seconds for slice_ in mine)) is None:
        return False
    held = observation.attached[host].get(uuid)
    if held is None:
        return False
    listed = {(held.pool_uuid, index) for index in indexes_of(held.extents)}
    return listed == {(slice_.item.pool_uuid, slice_.item.index) for slice_ in mine}
