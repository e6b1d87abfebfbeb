"""The devices' permission tables against the ledger. Pure; part of pondstack.controller.reconcile.rules.rules."""

from collections.abc import Iterable, Mapping

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.devices.base import Heir, Permission
from pondstack.domain.causes import Cause
from pondstack.domain.model import Slice
from pondstack.domain.rack import AgedSlice
from pondstack.domain.states import SliceState

BACKED = (SliceState.ASSIGNING, SliceState.ONLINE)


def device_rules(observation: Observation) -> Iterable[Finding]:
    """Return the permissions that are left over, missing or another's; slices that just changed are left alone."""
    settled = observation.limits.settle_seconds + observation.spread_seconds
    for pool_uuid, table in observation.permissions.items():
        for aged in observation.rack.slices:
            if aged.item.pool_uuid == pool_uuid and aged.age_seconds >= settled:
                yield from _slice(observation, aged, table)
    for aged in observation.rack.slices:
        if aged.item.state is SliceState.SANITIZING and aged.age_seconds > observation.limits.stuck_seconds:
            detail = f"it waits to be sanitised for {aged.age_seconds:.0f} s"
            yield Finding("sanitizing_stuck", Severity.WARNING, aged.item.name, detail)


def _slice(observation: Observation, aged: AgedSlice, table: Mapping[int, Permission]) -> Iterable[Finding]:
    item, entry = aged.item, table.get(aged.item.index)
    subject = item.name
    if item.state is SliceState.FREE and entry is not None:
        why = f"the device lets {entry.host} in (allocation {entry.tag}), the ledger says free"
        action = actions.QuarantineSlices(item.pool_uuid, (item.index,), Cause.PERMISSION_LEFT, why, entry.host)
        yield Finding("permission_left", Severity.CRITICAL, subject, action.reason, action)
    elif item.state in BACKED and item.allocation_uuid is not None:
        if entry is None:
            detail = f"the device does not let {item.host} in; the slice belongs to allocation {item.allocation_uuid}"
            action_ = actions.Regrant(item.allocation_uuid)
            yield Finding("permission_missing", Severity.WARNING, subject, detail, action_)
        elif entry.heir == Heir(item.host or "", item.allocation_uuid):
            detail = f"it was handed over by {entry.host} (allocation {entry.tag}), whose permission it still is"
            regrant = actions.Regrant(item.allocation_uuid)
            yield Finding("permission_waits", Severity.WARNING, subject, detail, regrant)
        elif (entry.host, entry.tag) != (item.host, item.allocation_uuid):
            why = (
                f"the device lets {entry.host} in (allocation {entry.tag}), the ledger says "
                f"{item.host} (allocation {item.allocation_uuid})"
            )
            taken = actions.QuarantineAllocation(item.allocation_uuid, Cause.PERMISSION_DIFFERS, why)
            yield Finding("permission_differs", Severity.CRITICAL, subject, taken.reason, taken)
        elif entry.heir is not None and not _is_heir(observation, entry.heir, item):
            detail = (
                f"the device lets {entry.heir.host} in for allocation {entry.heir.tag}, to which nobody hands it over"
            )
            end = actions.EndPermissions(item.pool_uuid, (item.index,), entry.heir.tag)
            yield Finding("heir_left", Severity.WARNING, subject, detail, end)


def _is_heir(observation: Observation, heir: Heir, item: Slice) -> bool:
    """Tell whether the ledger knows an heir of a slice. It was read later than the table, where heirs come later."""
    owner = observation.owner_of.get(heir.tag)
    return owner is not None and owner.uuid == item.allocation_uuid
