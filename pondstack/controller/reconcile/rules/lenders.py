"""What lenders report of their buffers and keys against the ledger. Pure; part of pondstack.controller.reconcile.rules.

A lender that does not answer its agent, that is about to lend or to take memory back, or whose report is older than its
last word, says nothing here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.causes import Cause
from pondstack.domain.escrow import Link, unreachable
from pondstack.domain.lending import Buffer, Lender, LenderKind
from pondstack.domain.lent_memory import contradictions
from pondstack.domain.states import OWNED, SliceState


def lender_rules(observation: Observation) -> Iterable[Finding]:
    """Return where lenders lend something else than the ledger says, and keys that others have, or nobody has."""
    for name, report in observation.rack.hosts.items():
        told = report.lending
        if told is None or not observation.host_up(name) or observation.fenced(name) or not _is_settled(told):
            continue
        known = observation.rack.lent.lenders.get(name) or Lender(name, "", LenderKind.ACTIVE)
        if report.sequence <= known.sequence:
            continue
        yield from _differs(observation, known, told)
        if told["incarnation"] == known.incarnation:
            yield from _keys(observation, name, told)


def _is_settled(told: Mapping[str, Any]) -> bool:
    """Return whether the lender itself said so, and has nothing under way."""
    under_way = any(each["state"] != "done" for each in told.get("operations", ()))
    return bool(told.get("answers", True)) and not under_way


def _differs(observation: Observation, known: Lender, told: Mapping[str, Any]) -> Iterable[Finding]:
    name, size = known.host, int(told["buffer_mib"])
    there = tuple(index for first, count, *_ in told["buffers"] for index in range(first, first + count))
    listed = {
        (aged.item.incarnation, aged.item.index)
        for aged in observation.rack.lent.buffers
        if aged.item.lender == name and aged.item.cause is not Cause.LENDER_LOST
    }
    lends = {(str(told["incarnation"]), index) for index in there}
    same = (told["incarnation"], listed) == (known.incarnation, lends)
    if same and (not there or told["kind"] == known.kind):
        return
    detail = (
        f"{name} lends {len(lends)} buffers as {told['incarnation'] or 'nobody'} ({told['kind']}); the ledger has "
        f"{len(listed)} of {known.incarnation or 'nobody'} ({known.kind}), {len(listed ^ lends)} are not the same"
    )
    sequence = observation.report_sequence(name) or 0
    offsets = tuple((index, index * size) for index in there)
    action = actions.TakeDelegation(name, told["incarnation"], told["kind"], size, offsets, sequence)
    yield Finding("lender_differs", Severity.WARNING, f"lender {name}", detail, action, host=name)


def _keys(observation: Observation, name: str, told: Mapping[str, Any]) -> Iterable[Finding]:
    for first, count, borrower, generation in told["buffers"]:
        for index in range(first, first + count):
            aged = observation.buffer_at.get((name, told["incarnation"], index))
            if aged is not None and observation.report_after(name, aged.age_seconds):
                yield from _key(aged.item, borrower, generation)


def _key(item: Buffer, borrower: str, generation: int) -> Iterable[Finding]:
    """One buffer whose lender says that `borrower` ("": nobody) has a key of that generation."""
    owner = item.host if item.state in OWNED else None
    if (item.escrowed or item.shared) and borrower:
        return  # keys for several borrowers live; the settler has them end
    if item.state is SliceState.FREE and borrower and not _may_be_promised(item, borrower):
        detail = f"{borrower} has a key of it, and the ledger says free"
        action = _end_key(item, generation, item.generation)
        yield Finding("key_left", Severity.CRITICAL, item.name, detail, action, host=item.lender)
    elif owner is not None and borrower not in ("", owner):
        detail = f"{borrower} has a key of it, and it belongs to {owner} (allocation {item.allocation_uuid})"
        action = _end_key(item, generation, item.generation - 1)
        yield Finding("key_differs", Severity.CRITICAL, item.name, detail, action, host=item.lender)
    elif item.state is SliceState.ONLINE and not borrower:
        why = f"its lender has no key of it for {owner} any more: what was in it is gone"
        back = actions.AskBack(item.allocation_uuid or "", why, ((item.incarnation, item.index),))
        yield Finding("key_missing", Severity.WARNING, item.name, why, back, host=item.lender)


def _may_be_promised(item: Buffer, borrower: str) -> bool:
    """Return whether a free buffer's key is a promise, noted or in the making."""
    return borrower == item.promised_to or (item.promised_to is None and item.kind is LenderKind.ZOMBIE)


def _end_key(item: Buffer, generation: int, newest: int) -> actions.RevokeKeys | None:
    """End a key that nobody may have. One of a newer generation is left: the ledger was restored from an old copy."""
    if generation > newest:
        return None
    return actions.RevokeKeys(item.lender, item.incarnation, ((item.index, newest),))


def buffer_rules(observation: Observation) -> Iterable[Finding]:
    """Return the buffers that wait for somebody, and where the ledger contradicts itself about them."""
    lent, limits = observation.rack.lent, observation.limits
    for aged in lent.buffers:
        item, waits = aged.item, f"for {aged.age_seconds:.0f} s"
        if item.state is SliceState.SANITIZING and item.kind is not LenderKind.ZOMBIE:
            if aged.age_seconds > limits.stuck_seconds:
                detail = f"{item.lender} has not said {waits} that its keys are dead"
                yield Finding("sanitizing_stuck", Severity.WARNING, item.name, detail)
        elif item.cause is Cause.HOST_FENCED:
            detail = f"{item.host} is fenced, and {item.lender} has not said yet that its keys are dead"
            yield Finding("fence_unconfirmed", Severity.WARNING, item.name, detail)
    yield from _unreachable(observation)
    for broken in contradictions(lent):
        yield Finding(f"ledger_{broken.code}", Severity.CRITICAL, broken.subject, broken.detail)


def _unreachable(observation: Observation) -> Iterable[Finding]:
    """Buffers that nobody can use before their lender is awake, by lender and the host that alone can have them.

    Waking it is somebody else's decision: this is what tells that it is of use.
    """
    links = {name: _links(report.borrowed) for name, report in observation.rack.hosts.items() if report.borrowed}
    known = {name: found for name, found in links.items() if found is not None and observation.host_up(name)}
    items = [aged.item for aged in observation.rack.lent.buffers if unreachable(aged.item, known)]
    for (lender, host), count in sorted(Counter((item.lender, item.promised_to) for item in items).items()):
        detail = (
            f"{host} has lost its link to {lender}, which sleeps: nobody can use {count} buffers before it is awake"
        )
        yield Finding("lender_unreachable", Severity.WARNING, f"lender {lender}", detail, host=lender)


def _links(borrowed: Mapping[str, Any]) -> set[Link] | None:
    """Return whom a host is linked to, None: an agent of the former release does not say it."""
    found = borrowed.get("links")
    return None if found is None else {(lender, incarnation) for lender, incarnation in found}
