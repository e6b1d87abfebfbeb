"""The devices' permission tables against the ledger. Pure; part of pondstack.controller.reconcile.rules.rules."""

from collections.abc import Iterable, Mapping

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.devices.base import Permission
from pondstack.domain.causes import Cause
from pondstack.domain.rack import AgedSlice
from pondstack.domain.states import SliceState

BACKED = (SliceState.ASSIGNING, SliceState.ONLINE)


def device_rules(observation: Observation) -> Iterable[Finding]:
    """Return the permissions that are left over, missing or another's; slices that just changed are left alone."""
    settled = observation.limits.settle_seconds + observation.spread_seconds
    for pool_uuid, table in observation.permissions.items():
        for aged in observation.rack.slices:
            if aged.item.pool_uuid == pool_uuid and aged.age_seconds >= settled:
                yield from _slice(aged, table)
    for aged in observation.rack.slices:
        if aged.item.state is SliceState.SANITIZING and aged.age_seconds > observation.limits.stuck_seconds:
            detail = f"it waits to be sanitised for {aged.age_seconds:.0f} s"
            yield Finding("sanitizing_stuck", Severity.WARNING, aged.item.name, detail)


def _slice(aged: AgedSlice, table: Mapping[int, Permission]) -> Iterable[Finding]:
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
        elif (entry.host, entry.tag) != (item.host, item.allocation_uuid):
            why = (
                f"the device lets {entry.host} in (allocation {entry.tag}), the ledger says "
                f"{item.host} (allocation {item.allocation_uuid})"
            )
            taken = actions.QuarantineAllocation(item.allocation_uuid, Cause.PERMISSION_DIFFERS, why)
            yield Finding("permission_differs", Severity.CRITICAL, subject, taken.reason, taken)
