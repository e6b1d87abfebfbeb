"""Consolidation plans in SQL. Each function is a part of the caller's transaction; times are the database's."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import ConsolidationLimitsRow, FreezeRow, PlanActionRow, PlanRow, table
from pondstack.db.store.newest_first import newest_first
from pondstack.domain.consolidation_limits import NOTHING_SET, ConsolidationLimits
from pondstack.domain.errors import NotFound
from pondstack.domain.plan import (
    ENDED,
    UNATTENDED,
    Action,
    ActionKind,
    ActionState,
    Afterwards,
    Effect,
    Plan,
    PlanKind,
    PlanState,
    PlanTrigger,
)
from pondstack.ledger.store import Freeze

FREEZE = 1
"""The row's id."""
LIMITS = 1
"""The row's id."""


def get(session: Session, uuid: str) -> Plan | None:
    """Return one, with its actions."""
    found = _plans(session, select(PlanRow).where(PlanRow.uuid == uuid))
    return found[0] if found else None


def unattended(session: Session) -> list[Plan]:
    """Return those that the leader goes on with, the oldest first."""
    query = select(PlanRow).where(PlanRow.state.in_([str(state) for state in UNATTENDED]))
    return _plans(session, query.order_by(PlanRow.created_at, PlanRow.uuid))


def add(session: Session, item: Plan) -> None:
    """Add one that begins now."""
    now = _now(session)
    times = {"created_at": now, "updated_at": now, "decided_at": None, "ended_at": None}
    session.execute(insert(PlanRow).values(uuid=item.uuid, **_values(item), **times))


def change(session: Session, item: Plan, *, decided: bool, ended: bool) -> None:
    """Write down what it is now, actions apart."""
    now = _now(session)
    times = {"updated_at": now, **({"decided_at": now} if decided else {}), **({"ended_at": now} if ended else {})}
    session.execute(
        update(PlanRow).where(PlanRow.uuid == item.uuid).values(**_values(item), **times),
        execution_options={"synchronize_session": False},
    )


def add_actions(session: Session, uuid: str, items: Sequence[Action]) -> None:
    """Add actions to a plan."""
    rows = [{"plan_uuid": uuid, "number": item.number, "begun_at": None, **_action_values(item)} for item in items]
    if rows:
        session.execute(insert(table(PlanActionRow)), rows)


def change_action(session: Session, uuid: str, item: Action, *, begun: bool) -> None:
    """Write down what an action is now; `begun`: it begins."""
    now = _now(session)
    times = {"begun_at": now} if begun else {}
    session.execute(
        update(PlanActionRow)
        .where(PlanActionRow.plan_uuid == uuid, PlanActionRow.number == item.number)
        .values(**_action_values(item), **times),
        execution_options={"synchronize_session": False},
    )
    session.execute(
        update(PlanRow).where(PlanRow.uuid == uuid).values(updated_at=now),
        execution_options={"synchronize_session": False},
    )


def begun(session: Session, kind: str, seconds: float) -> int:
    """Return how often actions of a kind that were begun within so many seconds were, by consolidation: each try."""
    row = PlanActionRow
    query = select(func.coalesce(func.sum(row.tries), 0)).select_from(row).join(PlanRow, PlanRow.uuid == row.plan_uuid)
    query = query.where(row.kind == kind, row.begun_at > now_seconds() - seconds)
    return int(session.execute(query.where(PlanRow.kind == str(PlanKind.CONSOLIDATE))).scalar_one())


def first_begun(session: Session, kind: str, seconds: float) -> float | None:
    """Return when the first of the actions that begun() counts was begun last; None: it counts none."""
    row = PlanActionRow
    query = select(func.min(row.begun_at)).select_from(row).join(PlanRow, PlanRow.uuid == row.plan_uuid)
    query = query.where(row.kind == kind, row.begun_at > now_seconds() - seconds)
    first = session.execute(query.where(PlanRow.kind == str(PlanKind.CONSOLIDATE))).scalar_one()
    return None if first is None else float(first)


def recent(session: Session, seconds: float) -> list[Plan]:
    """Return those that were made within so many seconds, without their actions."""
    now = _now(session)
    query = select(PlanRow).where(PlanRow.created_at >= now - seconds).order_by(PlanRow.created_at, PlanRow.uuid)
    return [_plan(row, (), now) for row in session.execute(query).scalars()]


def prune(session: Session, keep_seconds: float) -> int:
    """Forget those that ended, or were proposed and never applied, longer ago; returns how many."""
    ended = [str(state) for state in (*ENDED, PlanState.PROPOSED)]
    query = select(PlanRow.uuid).where(PlanRow.state.in_(ended), PlanRow.updated_at < now_seconds() - keep_seconds)
    gone = list(session.execute(query).scalars())
    for uuid in gone:
        session.execute(delete(table(PlanActionRow)).where(table(PlanActionRow).c.plan_uuid == uuid))
        session.execute(delete(table(PlanRow)).where(table(PlanRow).c.uuid == uuid))
    return len(gone)


def frozen(session: Session) -> Freeze | None:
    """Return since when consolidation is frozen, and why; None: it is not."""
    row = session.get(FreezeRow, FREEZE)
    return None if row is None else Freeze(row.reason, row.since)


def freeze(session: Session, reason: str) -> None:
    """Freeze it now, for another reason if it is already."""
    found = frozen(session)
    thaw(session)
    since = _now(session) if found is None else found.since
    session.execute(insert(table(FreezeRow)).values(id=FREEZE, reason=reason, since=since))


def thaw(session: Session) -> None:
    """Let it go on."""
    changed = session.execute(delete(table(FreezeRow)))
    assert isinstance(changed, CursorResult)


def limits(session: Session) -> ConsolidationLimits:
    """Return what an operator has set."""
    row = session.get(ConsolidationLimitsRow, LIMITS)
    return NOTHING_SET if row is None else ConsolidationLimits(row.reserve_percent, row.least_awake)


def set_limits(session: Session, changes: Mapping[str, Any]) -> ConsolidationLimits:
    """Set what `changes` names, None: unset it; returns what is set then. Raises BadRequest."""
    after = limits(session).changed(changes)
    session.execute(delete(table(ConsolidationLimitsRow)))
    if after.given:
        session.execute(insert(table(ConsolidationLimitsRow)).values(id=LIMITS, **after.given))
    return after


def record(session: Session, uuid: str) -> Plan:
    """Return one, with its actions; raises NotFound."""
    found = get(session, uuid)
    if found is None:
        raise NotFound(f"there is no plan {uuid}; list the plans")
    return found


def records(
    session: Session, *, state: str | None = None, limit: int | None = None, marker: str | None = None
) -> list[Plan]:
    """Return plans without their actions, the newest first; raises NotFound for an unknown marker."""
    query = select(PlanRow, now_seconds())
    if state is not None:
        query = query.where(PlanRow.state == state)
    query = newest_first(session, query, PlanRow, "plan", marker)
    return [_plan(row, (), now) for row, now in session.execute(query.limit(limit))]


def _plans(session: Session, query: Any) -> list[Plan]:
    rows = list(session.execute(query).scalars())
    now = _now(session)
    return [_plan(row, _actions(session, row.uuid), now) for row in rows]


def _actions(session: Session, uuid: str) -> Iterable[Action]:
    rows = table(PlanActionRow)
    query = select(rows).where(rows.c.plan_uuid == uuid).order_by(rows.c.number)
    for row in session.execute(query):
        yield Action(
            row.number,
            ActionKind(row.kind),
            row.chain,
            row.host,
            row.server_uuid,
            row.destination,
            row.mib,
            ActionState(row.state),
            row.reason,
            row.tries,
        )


def _now(session: Session) -> float:
    return float(session.execute(select(now_seconds())).scalar_one())


def _values(item: Plan) -> dict[str, Any]:
    return {
        "kind": str(item.kind),
        "trigger": str(item.trigger),
        "state": str(item.state),
        "afterwards": str(item.afterwards),
        "at_once": item.at_once,
        "target": item.target,
        "ending": item.ending,
        "effect": item.effect.to_record(),
        "settings": dict(item.settings),
        "inputs": dict(item.inputs),
        "left_out": dict(item.left_out),
        "reason": item.reason,
    }


def _action_values(item: Action) -> dict[str, Any]:
    return {
        "kind": str(item.kind),
        "chain": item.chain,
        "host": item.host,
        "server_uuid": item.server_uuid,
        "destination": item.destination,
        "mib": item.mib,
        "state": str(item.state),
        "reason": item.reason,
        "tries": item.tries,
    }


def _plan(row: PlanRow, actions: Iterable[Action], now: float) -> Plan:
    return Plan(
        uuid=row.uuid,
        kind=PlanKind(row.kind),
        trigger=PlanTrigger(row.trigger),
        state=PlanState(row.state),
        actions=tuple(actions),
        effect=Effect.from_record(row.effect),
        afterwards=Afterwards(row.afterwards),
        at_once=row.at_once,
        target=row.target,
        ending=row.ending,
        settings=row.settings,
        inputs=row.inputs,
        left_out=row.left_out,
        reason=row.reason,
        created_at=row.created_at,
        updated_at=row.updated_at,
        decided_at=row.decided_at,
        ended_at=row.ended_at,
        age_seconds=0.0 if row.decided_at is None else max(0.0, now - row.decided_at),
    )
