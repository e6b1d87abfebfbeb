"""Failed devices and fenced hosts (Pond section 4.2: failure management). Pure.

A device's failure touches its own slices only. A host is dead by an operator's word, never by a time-out, and its
slices are others' only after their device has confirmed that it keeps the host out.
"""

from collections.abc import Iterable

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.causes import Cause, failure_detail
from pondstack.domain.model import PoolState
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import AgedAllocation, AgedSlice, PoolDetail
from pondstack.domain.states import SliceState

LOOSE = (SliceState.FREE, SliceState.SANITIZING)


def failure_rules(observation: Observation) -> Iterable[Finding]:
    """Return what has to become of the slices of failed devices and of fenced hosts."""
    for uuid, detail in observation.rack.pools.items():
        silent_seconds = observation.failing.get(uuid, -1.0)
        if detail.pool.state is PoolState.FAILED and silent_seconds >= observation.limits.device_failed_seconds:
            yield from _failed(observation, detail)
    for name, report in observation.rack.hosts.items():
        if report.fenced is not None:
            yield from fence_rules(observation, name)


def _failed(observation: Observation, detail: PoolDetail) -> Iterable[Finding]:
    pool, number = detail.pool, detail.failures
    about = f"{pool.name}: its device does not answer"
    for aged in observation.rack.allocations.values():
        if aged.item.pool_uuid == pool.uuid:
            yield _allocation(observation, aged, number, about)
    loose = [
        aged.item.index for aged in observation.rack.slices if aged.item.pool_uuid == pool.uuid and _is(aged, LOOSE)
    ]
    if loose:
        detail_ = f"{len(loose)} slices without an owner are on the failed device"
        why = failure_detail(number, about)
        action = actions.QuarantineSlices(pool.uuid, tuple(loose), Cause.DEVICE_FAILED, why, failure=number)
        yield Finding("device_failed", Severity.WARNING, f"pool {pool.uuid}", detail_, action)


def _allocation(observation: Observation, aged: AgedAllocation, number: int, about: str) -> Finding:
    """Name a guest with memory on a failed device, each time; act the first time."""
    item = aged.item
    mine = observation.slices_of.get(item.uuid, ())
    known = all((slice_.item.cause, slice_.item.failure) == (Cause.DEVICE_FAILED, number) for slice_ in mine)
    held = observation.attached.get(item.host, {}).get(item.uuid)
    notify = observation.claimed[item.uuid] or (held is not None and held.in_use)
    whose = f"instance {item.consumer_uuid} on {item.host}"
    if item.purpose is not Purpose.GUEST:  # there is no instance that anybody could be told of
        notify, whose = False, f"host {item.host} itself ({item.purpose})"
    detail = f"{whose} has {item.pool_mib} MiB of the failed pool {item.pool_uuid}"
    action = None if known else actions.FailAllocation(item.uuid, number, about, notify)
    return Finding("memory_failed", Severity.CRITICAL, f"allocation {item.uuid}", detail, action)


def fence_rules(observation: Observation, host: str) -> Iterable[Finding]:
    """Return what the devices have not confirmed yet of a fenced host; if nothing, that it is fenced."""
    by_pool: dict[str, list[int]] = {}
    for aged in observation.rack.slices:
        failed = aged.item.cause is Cause.DEVICE_FAILED
        if aged.item.host == host and aged.item.state is SliceState.QUARANTINED and not failed:
            by_pool.setdefault(aged.item.pool_uuid, []).append(aged.item.index)
    for pool_uuid, indexes in by_pool.items():
        detail = f"{host} is fenced, and the device has not confirmed yet that it keeps it out"
        action = actions.FenceSlices(host, pool_uuid, tuple(indexes))
        yield Finding("fence_unconfirmed", Severity.WARNING, f"slices {pool_uuid}/{indexes}", detail, action)
    if not by_pool and host in observation.rack.hosts:  # it may have been removed since it was fenced
        reason = observation.rack.hosts[host].fenced
        yield Finding("host_fenced", Severity.INFO, f"host {host}", f"it is fenced: {reason}")


def _is(aged: AgedSlice, states: tuple[SliceState, ...]) -> bool:
    return aged.item.state in states
