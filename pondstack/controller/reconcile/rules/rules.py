"""The reconciler's decision: ledger, Placement, agents and devices in, findings with typed actions out. Pure.

Slices are set free on evidence only: the host's own word that it holds them no more, never a time-out.
"""

from collections.abc import Iterable

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.controller.reconcile.rules.devices import device_rules
from pondstack.controller.reconcile.rules.failures import failure_rules
from pondstack.controller.reconcile.rules.lenders import buffer_rules, lender_rules
from pondstack.controller.reconcile.rules.loans import loan_rules
from pondstack.controller.reconcile.rules.mitigations import left_alone, mitigation_rules
from pondstack.controller.reconcile.rules.reinstate import reinstate
from pondstack.controller.reconcile.rules.reports import report_rules
from pondstack.controller.reconcile.rules.sleeps import sleep_rules
from pondstack.domain import transitions
from pondstack.domain.causes import Cause
from pondstack.domain.host_slices import HoldingKey
from pondstack.domain.model import PoolState
from pondstack.domain.rack import AgedAllocation
from pondstack.domain.states import OWNED, SliceState

HELD = (SliceState.ASSIGNING, SliceState.ONLINE)


def decide(observation: Observation) -> list[Finding]:
    """Return all that disagrees, at most one action per allocation and slice."""
    found = [
        *_ledger_rules(observation),
        *failure_rules(observation),
        *(
            finding
            for aged in observation.rack.allocations.values()
            if not left_alone(observation, aged.item)
            for finding in _allocation_rules(observation, aged)
        ),
        *report_rules(observation),
        *device_rules(observation),
        *_claim_rules(observation),
        *_holding_rules(observation),
        *buffer_rules(observation),
        *lender_rules(observation),
        *loan_rules(observation),
        *mitigation_rules(observation),
        *sleep_rules(observation),
    ]
    unique: dict[tuple[str, str], Finding] = {}
    for finding in found:
        unique.setdefault(finding.key, finding)
    return list(unique.values())


def _ledger_rules(observation: Observation) -> Iterable[Finding]:
    for broken in transitions.violations(observation.rack.ledger()):
        yield Finding(f"ledger_{broken.code}", Severity.CRITICAL, broken.subject, broken.detail)
    for uuid, detail in observation.rack.pools.items():
        if detail.pool.state is PoolState.FAILED:
            yield Finding("pool_failed", Severity.CRITICAL, f"pool {uuid}", "its device does not answer")
    for name, report in observation.rack.hosts.items():
        if not observation.host_up(name) and not report.is_expected_silent:
            silence = f"its agent is silent for {report.age_seconds:.0f} s"
            yield Finding("agent_down", Severity.WARNING, f"host {name}", silence)


def _allocation_rules(observation: Observation, aged: AgedAllocation) -> Iterable[Finding]:
    """The life of one allocation: at most one finding."""
    item, subject = aged.item, f"allocation {aged.item.uuid}"
    states = {slice_.item.state for slice_ in observation.slices_of.get(item.uuid, ())}
    offline = actions.Offline(item.host, item.uuid, observation.report_sequence(item.host))
    stuck = observation.stuck(item.host, item.uuid)
    if not states and item.uuid in observation.owner_of:
        yield from _inheriting(observation, aged, offline)
    elif stuck is not None and states & OWNED:
        action_ = actions.QuarantineAllocation(
            item.uuid, Cause.OFFLINE_STUCK, f"{item.host} cannot take it offline: {stuck}"
        )
        yield Finding("offline_stuck", Severity.WARNING, subject, action_.reason, action_, host=item.host)
    elif SliceState.RELEASING in states:
        yield _releasing(observation, aged, offline)
    elif states & set(HELD) and _overdue(observation, aged):
        held = observation.attached.get(item.host, {}).get(item.uuid)
        detail = f"nobody claims it for {aged.unclaimed_seconds or 0:.0f} s"
        if not observation.host_up(item.host):
            reason = f"unclaimed: {detail} and the agent of {item.host} is silent"
            action = actions.BeginRelease(item.uuid, reason)
            yield Finding("unclaimed_agent_down", Severity.WARNING, subject, reason, action)
        elif held is not None and held.in_use:
            yield Finding("unclaimed_in_use", Severity.INFO, subject, f"{detail}, its guest still runs")
        else:
            yield Finding("unclaimed", Severity.WARNING, subject, detail, offline, host=item.host)
    elif SliceState.ASSIGNING in states and aged.age_seconds > observation.limits.assign_timeout_seconds:
        yield from _never_acknowledged(observation, aged, offline)


def _inheriting(observation: Observation, aged: AgedAllocation, offline: actions.Offline) -> Iterable[Finding]:
    """Return what becomes of an allocation that is to get another one's slices, once nobody claims it."""
    host, held = aged.item.host, observation.attached.get(aged.item.host, {}).get(aged.item.uuid)
    if not _overdue(observation, aged) or not observation.host_up(host):
        return
    if held is not None and held.in_use:
        detail = f"nobody claims it for {aged.unclaimed_seconds or 0:.0f} s, its guest still runs"
        yield Finding("unclaimed_in_use", Severity.INFO, f"allocation {aged.item.uuid}", detail)
    else:
        detail = (
            f"nobody claims it, and the slices of allocation {observation.owner_of[aged.item.uuid].uuid} are its next"
        )
        yield Finding("unclaimed", Severity.WARNING, f"allocation {aged.item.uuid}", detail, offline, host=host)


def _overdue(observation: Observation, aged: AgedAllocation) -> bool:
    if observation.claims is None or observation.claimed[aged.item.uuid] or aged.unclaimed_seconds is None:
        return False
    return aged.unclaimed_seconds >= observation.limits.unclaimed_grace_seconds


def _releasing(observation: Observation, aged: AgedAllocation, offline: actions.Offline) -> Finding:
    subject, host = f"allocation {aged.item.uuid}", aged.item.host
    if back := reinstate(observation, aged.item.uuid):
        return back
    if observation.host_up(host):
        detail = f"{host} has not confirmed its release"
        # What may be claimed again, and is still there, is not taken: its guest may be off for a moment only.
        kept = observation.claimed[aged.item.uuid] and aged.item.uuid in observation.attached[host]
        return Finding("releasing", Severity.WARNING, subject, detail, None if kept else offline, host=host)
    why = f"{host} is silent and may still map it; it is kept until {host} reports"
    action = actions.QuarantineAllocation(aged.item.uuid, Cause.AGENT_DOWN, why)
    return Finding("releasing_agent_down", Severity.WARNING, subject, action.reason, action)


def _never_acknowledged(observation: Observation, aged: AgedAllocation, offline: actions.Offline) -> Iterable[Finding]:
    item, subject = aged.item, f"allocation {aged.item.uuid}"
    report = observation.report_after(item.host, aged.age_seconds)
    if report is None:
        return
    detail = f"it was assigned {aged.age_seconds:.0f} s ago and never acknowledged"
    if item.uuid in observation.attached[item.host]:
        action = actions.Acknowledge(item.host, item.uuid)
        yield Finding("acknowledge_lost", Severity.WARNING, subject, detail, action, host=item.host)
    else:
        yield Finding("assign_abandoned", Severity.WARNING, subject, detail, offline, host=item.host)


def _holding_rules(observation: Observation) -> Iterable[Finding]:
    """What hosts are to hold for themselves and do not, or the reverse; the keeper of host slices goes on with it."""
    online: dict[HoldingKey, int] = {}
    for aged in observation.rack.allocations.values():
        states = {slice_.item.state for slice_ in observation.slices_of.get(aged.item.uuid, ())}
        if states == {SliceState.ONLINE}:
            key = HoldingKey(aged.item.host, aged.item.pool_uuid, aged.item.purpose)
            online[key] = online.get(key, 0) + 1
    for key, holding in observation.rack.holdings.items():
        if online.get(key, 0) != holding.wanted:
            subject = f"{key.purpose} slices of host {key.host} of pool {key.pool_uuid}"
            detail = f"{online.get(key, 0)} are online of {holding.wanted} wanted; {holding.reason or 'under way'}"
            yield Finding("host_slices_differ", Severity.INFO, subject, detail)


def _claim_rules(observation: Observation) -> Iterable[Finding]:
    """Placement's amounts against the ledger's, per pool and consumer."""
    if observation.claims is None:
        return
    ledger_mib: dict[tuple[str, str], int] = {}
    for uuid, aged in observation.rack.allocations.items():
        if observation.claimed[uuid]:
            key = aged.item.pool_uuid, observation.holders[uuid]
            ledger_mib[key] = ledger_mib.get(key, 0) + aged.item.pool_mib
    waiting = {
        consumer
        for key in observation.rack.holdings
        for consumer in key.numbers(observation.claims.pools.get(key.pool_uuid, ())).values()
    }
    for pool_uuid, consumers in observation.claims.pools.items():
        for consumer, claimed_mib in consumers.items():
            if consumer in observation.mitigated:
                continue
            held_mib = ledger_mib.get((pool_uuid, consumer))
            subject = f"consumer {consumer}"
            if held_mib is None:
                detail = (
                    f"it claims {claimed_mib} MiB of pool {pool_uuid} and holds no slices (starting, moving or off; if "
                    "it is no server and no migration of Nova any more: nova-manage placement audit)"
                )
                if consumer not in waiting:
                    yield Finding("claim_without_slices", Severity.INFO, subject, detail)
            elif held_mib != claimed_mib:
                detail = f"it claims {claimed_mib} MiB of pool {pool_uuid} and holds {held_mib} MiB"
                yield Finding("claim_differs", Severity.WARNING, subject, detail)
