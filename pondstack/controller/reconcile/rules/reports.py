"""What the agents report against what the ledger says. Pure; part of pondstack.controller.reconcile.rules.rules."""

from collections.abc import Iterable

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.controller.reconcile.rules.reinstate import reinstate
from pondstack.domain.causes import Cause
from pondstack.domain.model import PoolState, indexes_of
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import AgedSlice
from pondstack.domain.states import OWNED, SliceState
from pondstack.rpc.wire import Attached

LOOSE = (SliceState.FREE, SliceState.SANITIZING)
FOR_OPERATORS = frozenset({Cause.SANITIZE_FAILED, Cause.DEVICE_FAILED})
"""Causes that no host's report explains."""


def report_rules(observation: Observation) -> Iterable[Finding]:
    """Return what each host holds that it should not, or does not hold that it should, and what can be explained."""
    for name, held in observation.attached.items():
        if observation.host_up(name):
            for attached in held.values():
                yield from _attached(observation, name, attached)
    for uuid in observation.rack.allocations:
        yield from _lost(observation, uuid)
    yield from _quarantined(observation)


def _attached(observation: Observation, host: str, attached: Attached) -> Iterable[Finding]:
    """One attachment that a live host reports."""
    uuid, subject = attached.allocation_uuid, f"allocation {attached.allocation_uuid}"
    indexes = indexes_of(attached.extents)
    found = [observation.slice_at.get((attached.pool_uuid, index)) for index in indexes]
    covered = [aged for aged in found if aged is not None]
    stuck = observation.stuck(host, uuid) is not None
    offline = None if stuck else actions.Offline(host, uuid, observation.report_sequence(host))
    if observation.fenced(host):
        detail = f"{host} is fenced and still lists it: it must let go before it is unfenced"
        yield Finding("fenced_attached", Severity.WARNING, subject, detail, offline, host=host)
        return
    if len(covered) < len(indexes):
        detail = f"{host} reports slices {list(indexes)} of pool {attached.pool_uuid}, which the ledger does not have"
        yield Finding("unknown_slices", Severity.CRITICAL, subject, detail, offline, host=host)
        return
    owner = observation.owner_of.get(uuid)
    whose = {uuid, owner.uuid if owner else uuid}  # what is being handed over is attached on both hosts
    foreign = [aged.item for aged in covered if aged.item.state in OWNED and aged.item.allocation_uuid not in whose]
    if foreign:
        owners = sorted({item.allocation_uuid or "" for item in foreign})
        detail = f"{host} reports slices {[i.index for i in foreign]} that belong to {', '.join(owners)}"
        yield Finding("conflicting_attachment", Severity.CRITICAL, subject, detail, offline, host=host)
    loose = [aged for aged in covered if aged.item.state in LOOSE and observation.report_after(host, aged.age_seconds)]
    if loose:
        mine = tuple(aged.item.index for aged in loose)
        why = f"{host} reports allocation {uuid}, which the ledger does not know"
        action = actions.QuarantineSlices(attached.pool_uuid, mine, Cause.UNKNOWN_ATTACHMENT, why, host, uuid)
        yield Finding("unknown_attachment", Severity.CRITICAL, subject, action.reason, action, host=host)
    elif any(aged.item.state is SliceState.QUARANTINED and aged.item.host == host for aged in covered):
        yield _still_attached(observation, host, attached, offline)


def _still_attached(
    observation: Observation, host: str, attached: Attached, offline: actions.Offline | None
) -> Finding:
    subject = f"allocation {attached.allocation_uuid}"
    if back := reinstate(observation, attached.allocation_uuid):
        return back
    if (stuck := observation.stuck(host, attached.allocation_uuid)) is not None:
        detail = f"it is quarantined, and {host} cannot take it offline yet: {stuck}"
        return Finding("offline_stuck", Severity.WARNING, subject, detail)
    claimed = attached.allocation_uuid in observation.rack.allocations and observation.claimed[attached.allocation_uuid]
    if attached.in_use or claimed:
        detail = f"it is quarantined and {host} still {'uses' if attached.in_use else 'holds'} it"
        return Finding("quarantined_in_use", Severity.WARNING, subject, detail)
    detail = f"it is quarantined, {host} holds it and nobody uses it"
    return Finding("quarantined_attached", Severity.WARNING, subject, detail, offline, host=host)


def _lost(observation: Observation, uuid: str) -> Iterable[Finding]:
    """ONLINE in the ledger, claimed, and a later report of its live host does not list it."""
    item = observation.rack.allocations[uuid].item
    mine = observation.slices_of.get(uuid, ())
    online = [aged for aged in mine if aged.item.state is SliceState.ONLINE]
    if not online or not observation.claimed[uuid]:
        return
    report = observation.report_after(item.host, min(aged.age_seconds for aged in online))
    if report is None or uuid in observation.attached[item.host]:
        return
    why = f"{item.host} does not report it any more; look at the guest {item.consumer_uuid}"
    action = actions.QuarantineAllocation(uuid, Cause.AGENT_LOST, why)
    yield Finding("agent_lost", Severity.CRITICAL, f"allocation {uuid}", action.reason, action, host=item.host)


def _quarantined(observation: Observation) -> Iterable[Finding]:
    """Quarantined slices: explained when the host that caused it reports, later, that it does not hold them.

    Those of a device that failed wait for an operator all the same, and until the device answers. Those of a fenced
    host are in pondstack.controller.reconcile.rules.failures.
    """
    groups: dict[tuple[str, str | None, str | None, Cause | None], list[AgedSlice]] = {}
    for aged in observation.rack.slices:
        item = aged.item
        if item.state is SliceState.QUARANTINED:
            special = item.cause if item.cause in FOR_OPERATORS else None
            groups.setdefault((item.pool_uuid, item.allocation_uuid, item.host, special), []).append(aged)
    for (pool_uuid, allocation_uuid, host, special), members in groups.items():
        indexes = tuple(aged.item.index for aged in members)
        subject = members[0].item.name if len(indexes) == 1 else f"slices {pool_uuid}/{list(indexes)}"
        reason = members[0].item.reason
        claimed = bool(allocation_uuid and _instance_claims(observation, allocation_uuid))
        if special is Cause.DEVICE_FAILED:
            yield _device_failed(observation, members, subject, claimed)
        elif observation.fenced(host):
            continue
        elif special or host is None:
            action = actions.AuditSlices(pool_uuid, indexes, "an operator asked for it")
            yield Finding("quarantined", Severity.WARNING, subject, reason, action, operator=True)
        elif _gone(observation, host, members) and not claimed:
            explained = actions.AuditSlices(pool_uuid, indexes, f"{host} reports that it does not hold them")
            yield Finding("explained", Severity.WARNING, subject, reason, explained, host=host)
        else:
            yield Finding("quarantined_waiting", Severity.WARNING, subject, reason)


def _device_failed(observation: Observation, members: list[AgedSlice], subject: str, claimed: bool) -> Finding:
    """Slices of one owner, or of none, that were set aside when their device failed."""
    item = members[0].item
    indexes = tuple(aged.item.index for aged in members)
    action: actions.Action = actions.AuditSlices(item.pool_uuid, indexes, "an operator asked for it")
    free = item.host is None or (_gone(observation, item.host, members) and not claimed)
    if item.host is not None and observation.fenced(item.host):
        action, free = actions.FenceSlices(item.host, item.pool_uuid, indexes), True
    if free and observation.rack.pools[item.pool_uuid].pool.state is PoolState.UP:
        return Finding("quarantined", Severity.WARNING, subject, item.reason, action, operator=True)
    return Finding("quarantined_waiting", Severity.WARNING, subject, item.reason)


def _instance_claims(observation: Observation, uuid: str) -> bool:
    """Whether an instance counts on an allocation. A keeper of host slices claims too, and asks for another one."""
    aged = observation.rack.allocations.get(uuid)
    guests = aged is None or aged.item.purpose is Purpose.GUEST
    return guests and bool(observation.claimed.get(uuid))


def _gone(observation: Observation, host: str, members: list[AgedSlice]) -> bool:
    if observation.report_after(host, min(aged.age_seconds for aged in members)) is None:
        return False
    wanted = {(aged.item.pool_uuid, aged.item.index) for aged in members}
    held = {(item.pool_uuid, i) for item in observation.attached[host].values() for i in indexes_of(item.extents)}
    return not wanted & held
