"""Judges a recorded history: what was acknowledged is in the journal, once, in an order that explains every answer.

Linearizability has a witness here, the journal's own sequence: the operations take effect in that order (the model
replays it), and the order respects real time (an operation that was answered before another began comes first). Two
calls with unknown outcomes need no guess: the journal says whether they happened, and whether their callers may rely on
it nobody asks. The owners' intervals are judged a second time from the callers' answers alone, without the journal.
"""

from collections.abc import Iterable
from itertools import pairwise

from tests.robustness.history import Call, Entry, History, Kind, Outcome, Place, Standing
from tests.robustness.model import OWNED, Broken, State, replay
from tests.robustness.validate_loans import check_loans

LOST = frozenset({"lost", "wrong_effect", "release_lost", "loan_lost"})
DUPLICATED = frozenset({"duplicate", "double_owner", "double_user"})
OLD_EPOCH = frozenset({"old_epoch"})

IN_JOURNAL: dict[Kind, tuple[str, ...]] = {
    Kind.ASSIGN: ("assign",),
    Kind.ACKNOWLEDGE: ("acknowledge",),
    Kind.RELEASE: ("release",),
    # The agent passes its own operation id on to the controller, for both.
    Kind.ATTACH: ("assign", "acknowledge"),
    Kind.DETACH: (),
    Kind.BORROW: ("borrow",),
    Kind.PREPARE: (),
    Kind.ACKNOWLEDGE_BORROWED: ("acknowledge_borrowed",),
    Kind.GIVE_BACK: (),
}
"""Under which kinds the journal must hold an acknowledged call's operation id."""


def validate(history: History) -> list[Broken]:
    """Return every broken promise; none is what is wanted."""
    slices, broken = replay(history.journal)
    broken += check_journal(history.journal)
    broken += check_acknowledged(history)
    broken += check_real_time(history)
    broken += check_ownership(history.calls)
    broken += check_releases(history)
    for standing in (history.held, history.drained):
        if standing is not None:
            broken += check_standing(standing)
    if history.drained is not None:
        broken += check_drained(history.drained)
        broken += _same(slices, history.drained)
    return broken + check_loans(history.loans, history.lent, history.lent_drained)


def check_journal(journal: list[Entry]) -> Iterable[Broken]:
    """Each (operation, kind) is there once, and no epoch is lower than one before it: no old leader wrote."""
    seen: set[tuple[str, str]] = set()
    for entry in journal:
        key = (entry.operation_id, entry.kind)
        if key in seen:
            yield Broken("duplicate", f"{entry.kind} {entry.operation_id} is in the journal twice", entry.operation_id)
        seen.add(key)
    for before, entry in pairwise(journal):
        if entry.sequence <= before.sequence:
            yield Broken("replay", f"sequence {entry.sequence} follows {before.sequence}", entry.operation_id)
        if entry.epoch < before.epoch:
            detail = f"sequence {entry.sequence} was written with epoch {entry.epoch} after epoch {before.epoch} wrote"
            yield Broken("old_epoch", detail, entry.operation_id)


def check_acknowledged(history: History) -> Iterable[Broken]:
    """Every call that was answered with success is in the journal, with the effect that the answer told."""
    entries = _by_key(history.journal)
    for call in history.calls:
        if call.outcome is not Outcome.OK:
            continue
        for kind in IN_JOURNAL[call.kind]:
            entry = entries.get((call.operation_id, kind))
            if entry is None:
                yield Broken("lost", f"{call.kind} {call.operation_id} was acknowledged, no {kind}", call.operation_id)
            elif kind == "assign" and (wrong := _wrong_grant(call, entry)):
                yield Broken("wrong_effect", f"{call.kind} {call.operation_id}: {wrong}", call.operation_id)


def _wrong_grant(call: Call, entry: Entry) -> str:
    effect = entry.effect
    granted = tuple(item["start"] + step for item in effect["extents"] for step in range(item["count"]))
    told = (call.allocation_uuid, call.pool_uuid, call.slices)
    if told != (effect["allocation_uuid"], effect["pool_uuid"], granted):
        return f"answered {told}, written {effect['allocation_uuid']} {granted}"
    if call.epoch < entry.epoch:
        return f"answered with epoch {call.epoch}, written with epoch {entry.epoch}"
    return ""


def check_real_time(history: History) -> Iterable[Broken]:
    """No operation that was answered before another one began comes after it in the journal."""
    entries = _by_key(history.journal)
    spans: list[tuple[int, Call]] = []
    for call in history.calls:
        if call.outcome is Outcome.OK:
            found = [entries.get((call.operation_id, kind)) for kind in IN_JOURNAL[call.kind]]
            spans += [(entry.sequence, call) for entry in found if entry is not None]
    latest: Call | None = None
    for _, call in sorted(spans, key=lambda span: span[0]):
        if latest is not None and call.ended is not None and call.ended < latest.begun:
            detail = f"{call.kind} {call.operation_id} ended before {latest.operation_id} began and is written after it"
            yield Broken("order", detail, call.operation_id)
        if latest is None or call.begun > latest.begun:
            latest = call


def check_ownership(calls: Iterable[Call]) -> Iterable[Broken]:
    """By the answers alone: from its grant to the beginning of its release a slice was promised to nobody else.

    A release whose outcome is unknown may have taken effect at its beginning; one that was never asked for, never.
    """
    calls = list(calls)
    ends = _release_beginnings(calls)
    held: dict[Place, dict[str, tuple[float, float]]] = {}
    for call in calls:
        if call.outcome is Outcome.OK and call.kind in (Kind.ASSIGN, Kind.ATTACH) and call.ended is not None:
            for index in call.slices:
                owners = held.setdefault((call.pool_uuid, index), {})
                since = min(call.ended, owners.get(call.allocation_uuid, (call.ended,))[0])
                owners[call.allocation_uuid] = (since, ends.get(call.allocation_uuid, float("inf")))
    for place, owners in held.items():
        spans = sorted((since, until, uuid) for uuid, (since, until) in owners.items())
        for before, after in pairwise(spans):
            if after[0] < before[1]:
                detail = f"slice {place[0]}/{place[1]} was granted to {after[2]} while {before[2]} held it"
                yield Broken("double_owner", detail)


def _release_beginnings(calls: Iterable[Call]) -> dict[str, float]:
    """Return when somebody first asked to release each allocation, whatever came of it."""
    ends: dict[str, float] = {}
    for call in calls:
        if call.kind in (Kind.RELEASE, Kind.DETACH) and call.allocation_uuid:
            ends[call.allocation_uuid] = min(call.begun, ends.get(call.allocation_uuid, call.begun))
    return ends


def check_releases(history: History) -> Iterable[Broken]:
    """What was given back with an acknowledgement is given back in the ledger."""
    if history.drained is None:
        return
    left = {allocation for _, _, allocation in history.drained.ledger.values() if allocation}
    for call in history.calls:
        gave_back = call.kind in (Kind.DETACH, Kind.RELEASE) and call.outcome is Outcome.OK
        if gave_back and call.allocation_uuid in left:
            detail = f"{call.kind} of allocation {call.allocation_uuid} was acknowledged, the ledger still has it"
            yield Broken("release_lost", detail, call.operation_id)


def check_standing(standing: Standing) -> Iterable[Broken]:
    """Ledger, agents and device say the same of each slice, and every slice is in the ledger once."""
    for place, (state, host, allocation) in standing.ledger.items():
        where = f"slice {place[0]}/{place[1]} ({state}, {host}, {allocation})"
        owner = (host, allocation)
        holders = standing.attached.get(place, [])
        if state == "online" and holders != [owner]:
            yield Broken("ledger_agents", f"{where}: agents report {holders}")
        if state not in OWNED and holders:
            yield Broken("ledger_agents", f"{where}: agents still report {holders}")
        permitted = standing.permitted.get(place)
        if state in OWNED and permitted != owner:
            yield Broken("ledger_device", f"{where}: the device permits {permitted}")
        if state == "free" and permitted is not None:
            yield Broken("ledger_device", f"{where}: the device still permits {permitted}")
    if strangers := (standing.attached.keys() | standing.permitted.keys()) - standing.ledger.keys():
        yield Broken("totals", f"slices {sorted(strangers)} are not in the ledger")
    for pool, total in standing.totals.items():
        indexes = sorted(index for uuid, index in standing.ledger if uuid == pool)
        if indexes != list(range(total)):
            yield Broken("totals", f"pool {pool}: {len(indexes)} slices in the ledger of {total}")
    for finding in standing.audit:
        yield Broken("audit", finding)


def check_drained(standing: Standing) -> Iterable[Broken]:
    """After everything was detached every slice is free."""
    for place, (state, host, allocation) in standing.ledger.items():
        if state != "free":
            yield Broken("left_over", f"slice {place[0]}/{place[1]} is {state} ({host}, {allocation})")


def _same(slices: dict[Place, State], standing: Standing) -> Iterable[Broken]:
    """The journal's moves, replayed from the beginning, give the ledger's slices."""
    for place in sorted(slices.keys() | standing.ledger.keys()):
        modelled = slices.get(place)
        told = (modelled.state, modelled.host, modelled.allocation) if modelled else None
        if told != standing.ledger.get(place):
            yield Broken("replay", f"slice {place[0]}/{place[1]}: replayed {told}, ledger {standing.ledger.get(place)}")


def _by_key(journal: Iterable[Entry]) -> dict[tuple[str, str], Entry]:
    return {(entry.operation_id, entry.kind): entry for entry in journal}
