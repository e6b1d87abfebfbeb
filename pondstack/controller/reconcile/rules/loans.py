"""What borrowers report, and what Placement claims, against the loans of the ledger. Pure; part of rules.py.

Nothing is set free here: a borrower lets go by its own word, and its lender ends the keys, before others get anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.causes import Cause
from pondstack.domain.lending import IN_USE, LenderKind, RemoteAllocation
from pondstack.domain.lent_memory import AgedBuffer, AgedLoan
from pondstack.domain.states import SliceState


def loan_rules(observation: Observation) -> Iterable[Finding]:
    """Return what borrowers have that is not theirs, or have no more, and loans without a claim."""
    for name, report in observation.rack.hosts.items():
        if report.borrowed is not None and observation.host_up(name):
            for held in report.borrowed.get("lenders", ()):
                yield from _held(observation, name, held)
            yield from (_stranded(name, told) for told in report.borrowed.get("stranded", ()))
    for uuid, aged in observation.rack.lent.loans.items():
        mine = observation.buffers_of.get(uuid, ())
        yield from _loan(observation, aged, mine)
    yield from _disks(observation)
    yield from _claims(observation)


def _held(observation: Observation, host: str, held: Mapping[str, Any]) -> Iterable[Finding]:
    """What a borrower has of one incarnation of a lender."""
    lender, incarnation = held["lender"], held["incarnation"]
    for uuid, indexes in held["allocations"].items():
        found = {index: observation.buffer_at.get((lender, incarnation, index)) for index in indexes}
        if not uuid:
            yield from _promises(observation, host, held, found)
            continue
        subject = f"loan {uuid} from {lender}@{incarnation}"
        if unknown := tuple(index for index, aged in found.items() if aged is None):
            detail = f"{host} uses buffers {list(unknown)} of lender {lender}, which the ledger does not have"
            action = actions.LetGo(host, uuid, lender, incarnation, unknown)
            yield Finding("unknown_loan", Severity.CRITICAL, subject, detail, action, host=host)
        if others := tuple(index for index, aged in found.items() if _is_others(observation, host, uuid, aged)):
            detail = f"{host} uses buffers {list(others)} of lender {lender}, which are not its own in the ledger"
            action = actions.LetGo(host, uuid, lender, incarnation, others)
            yield Finding("conflicting_loan", Severity.CRITICAL, subject, detail, action, host=host)


def _stranded(host: str, told: Mapping[str, Any]) -> Finding:
    """A guest that was migrated live, and whose source is gone with a part of its memory."""
    subject = f"guest {told['consumer_uuid']} on {host}"
    detail = f"it waits for {told['seconds']} s for memory that the host has where it came from"
    if told["lost"]:
        detail += ", and that is lost: nova-compute ends it; hard reboot the server"
        return Finding("guest_memory_lost", Severity.CRITICAL, subject, detail)
    detail += ": start the data plane there; where that host is lost, hard reboot the server"
    return Finding("guest_waits", Severity.WARNING, subject, detail)


def _promises(
    observation: Observation, host: str, held: Mapping[str, Any], found: Mapping[int, AgedBuffer | None]
) -> Iterable[Finding]:
    lender, incarnation = held["lender"], held["incarnation"]
    if left := tuple(index for index, aged in found.items() if _is_left(observation, host, aged)):
        subject = f"promises of {lender}@{incarnation} to {host}"
        detail = f"{host} keeps keys of buffers {list(left)} of lender {lender}, which are not promised to it any more"
        action = actions.LetGo(host, "", lender, incarnation, left)
        yield Finding("promise_left", Severity.WARNING, subject, detail, action, host=host)


def _is_others(observation: Observation, host: str, uuid: str, aged: AgedBuffer | None) -> bool:
    if aged is None or aged.item.heir == uuid or (aged.item.host, aged.item.allocation_uuid) == (host, uuid):
        return False
    return observation.report_after(host, aged.age_seconds) is not None


def _is_left(observation: Observation, host: str, aged: AgedBuffer | None) -> bool:
    """Return whether a promised key is of no use: its buffer is gone, or another's. Not while it is being made."""
    if aged is None:
        return True
    item = aged.item
    if host in (item.promised_to, item.host) or observation.report_after(host, aged.age_seconds) is None:
        return False
    return item.kind is not LenderKind.ZOMBIE or item.promised_to is not None


def _loan(observation: Observation, aged: AgedLoan, mine: Sequence[AgedBuffer]) -> Iterable[Finding]:
    item, subject = aged.item, f"loan {aged.item.uuid}"
    silent = "" if observation.host_up(item.host) else ", whose agent is silent"
    if lost := [each for each in mine if each.item.cause is Cause.LENDER_LOST]:
        detail = f"its lender lost {len(lost)} of its buffers; {item.host}{silent} has not let go of them yet"
        yield Finding("lender_lost", Severity.WARNING, subject, detail)
    if back := [each for each in mine if each.item.state is SliceState.RELEASING and _is_old(observation, each)]:
        detail = f"{item.host}{silent} has not given {len(back)} buffers back: {back[0].item.reason}"
        yield Finding("loan_releasing", Severity.WARNING, subject, detail)
    kept = not item.guaranteed and observation.host_up(item.host)  # its disk ends first, unless its instance runs
    to_inherit = observation.inheritance_of.get(item.uuid, ())
    wanted = any(each.item.state in IN_USE for each in mine) or to_inherit
    if not kept and _is_overdue(observation, aged) and wanted:
        detail = f"nobody claims it for {aged.unclaimed_seconds or 0:.0f} s"
        action = actions.AskBack(item.uuid, f"unclaimed: {detail}")
        yield Finding("loan_unclaimed", Severity.WARNING, subject, detail, action)
        return
    known = [each for each in mine if each.item.state is SliceState.ONLINE]
    if item.acknowledged:
        known += to_inherit
    if gone := [each for each in known if not _is_listed(observation, item, each)]:
        detail = f"{item.host} does not report {len(gone)} of its buffers any more"
        only = tuple((each.item.incarnation, each.item.index) for each in gone)
        lost_ = actions.AskBack(item.uuid, f"lost: {detail}", only)
        yield Finding("loan_lost", Severity.CRITICAL, subject, detail, lost_, host=item.host)


def _is_old(observation: Observation, aged: AgedBuffer) -> bool:
    return aged.age_seconds >= observation.limits.settle_seconds


def _is_overdue(observation: Observation, aged: AgedLoan) -> bool:
    if observation.loan_claimed[aged.item.uuid] or aged.unclaimed_seconds is None:
        return False
    return aged.unclaimed_seconds >= observation.limits.unclaimed_grace_seconds


def _is_listed(observation: Observation, loan: RemoteAllocation, aged: AgedBuffer) -> bool:
    """Return whether a borrower has a buffer on its books; True while no later report of a live agent tells."""
    item = aged.item
    report = observation.report_after(loan.host, aged.age_seconds)
    if report is None or report.borrowed is None:
        return True
    for held in report.borrowed.get("lenders", ()):
        if (held["lender"], held["incarnation"]) == (item.lender, item.incarnation):
            told = [each["indexes"] for each in held["released"] if each["allocation_uuid"] == loan.uuid]
            books = [held[part].get(loan.uuid, ()) for part in ("allocations", "leaving")]
            return any(item.index in indexes for indexes in [*books, *told])
    return False


def _disks(observation: Observation) -> Iterable[Finding]:
    """Swap disks that Nova forgot, as it deleted their instances while the agents were silent."""
    for (host, consumer), seconds in observation.unclaimed_disks.items():
        if observation.disk_claimed.get((host, consumer), True):
            continue
        if seconds < observation.limits.unclaimed_grace_seconds:
            continue
        about = f"{host}{'' if observation.host_up(host) else ', whose agent is silent,'} has it"
        detail = f"{about}, of {observation.disks[host, consumer]} MiB, and nobody claims it for {seconds:.0f} s"
        loans = (aged.item for aged in observation.rack.lent.loans.values() if not aged.item.guaranteed)
        mine = tuple(sorted(item.uuid for item in loans if (item.host, item.consumer_uuid) == (host, consumer)))
        action = actions.EndSwap(host, consumer, mine, f"unclaimed: {detail}") if observation.host_up(host) else None
        yield Finding(
            "swap_disk_unclaimed", Severity.WARNING, f"swap disk of {consumer} on {host}", detail, action, host=host
        )


def _claims(observation: Observation) -> Iterable[Finding]:
    """Placement's amounts against the ledger's, per consumer."""
    if observation.claims is None or observation.claims.remote is None:
        return
    held_mib: dict[str, int] = {}
    for uuid, aged in observation.rack.lent.loans.items():
        if aged.item.guaranteed and observation.loan_claimed[uuid]:
            mine = [each.item for each in observation.buffers_of.get(uuid, ()) if each.item.state in IN_USE]
            before = held_mib.get(aged.item.consumer_uuid, 0)
            held_mib[aged.item.consumer_uuid] = before + sum(item.size_mib for item in mine)
    for consumer, claimed_mib in observation.claims.remote.items():
        subject, held = f"lent memory of consumer {consumer}", held_mib.get(consumer, 0)
        if not held:
            detail = f"it claims {claimed_mib} MiB and has borrowed nothing (starting, moving or off)"
            yield Finding("claim_without_loan", Severity.INFO, subject, detail)
        elif held != claimed_mib:
            detail = f"it claims {claimed_mib} MiB and has borrowed {held} MiB"
            yield Finding("claim_differs", Severity.WARNING, subject, detail)
