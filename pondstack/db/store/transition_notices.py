"""Which notifications of plans and of hosts' sleeps were sent, in SQL. Each function is a part of a transaction."""

from sqlalchemy import Exists, delete, exists, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.upsert import upsert
from pondstack.db.models import HostSleepRow, PlanRow, TransitionNoticeRow, table
from pondstack.db.store import host_sleeps, plans
from pondstack.domain.host_sleep import HostSleep, SleepState
from pondstack.domain.plan import UNDER_WAY, Plan, PlanState

START, ASLEEP, LOST, END, ERROR = "start", "asleep", "lost", "end", "error"
LATE_SECONDS = 24 * 3600.0
"""Of what ended longer ago nobody is told any more: it was so before there were these notifications."""
_STARTED = [str(state) for state in (*UNDER_WAY, PlanState.DONE)]


def pending_plans(session: Session) -> list[tuple[Plan, str]]:
    """Return plans that were applied and of which nobody was told, with what to tell: start before end."""
    row, recent = PlanRow, PlanRow.ended_at > now_seconds() - LATE_SECONDS
    query = select(row.uuid).where(or_(row.state.in_([str(state) for state in UNDER_WAY]), recent))
    found = []
    for uuid in session.execute(query.where(~_ended(row.uuid)).order_by(row.created_at, row.uuid)).scalars().all():
        plan, told = plans.get(session, uuid), _told(session, uuid)
        if plan is None:
            continue
        began = START in told or any(action.tries for action in plan.actions) or str(plan.state) in _STARTED
        if began and START not in told:
            found.append((plan, START))
        if not plan.is_open and (began or plan.state is PlanState.FAILED):
            found.append((plan, ERROR if plan.state is PlanState.FAILED else END))
    return found


def pending_sleeps(session: Session) -> list[tuple[HostSleep, str]]:
    """Return hosts' sleeps of which nobody was told, with what to tell; that one is asleep, or lost, while it is."""
    row, recent = HostSleepRow, HostSleepRow.ended_at > now_seconds() - LATE_SECONDS
    query = select(row.uuid).where(or_(row.ended_at.is_(None), recent), ~_ended(row.uuid))
    found = []
    for uuid in session.execute(query.order_by(row.created_at, row.uuid)).scalars().all():
        item, told = host_sleeps.get(session, uuid), _told(session, uuid)
        if item is not None:
            found += [(item, kind) for kind in _kinds(item) if kind not in told]
    return found


def _kinds(item: HostSleep) -> list[str]:
    last = {
        SleepState.ASLEEP: [ASLEEP],
        SleepState.LOST: [LOST],
        SleepState.FAILED: [ERROR],
        SleepState.AWAKE: [END],
        SleepState.ABORTED: [END],
    }
    return [START, *last.get(item.state, [])]


def note(session: Session, subject_uuid: str, kind: str) -> None:
    """Remember that one was sent."""
    moment = session.execute(select(now_seconds())).scalar_one()
    upsert(session, table(TransitionNoticeRow), [{"subject_uuid": subject_uuid, "kind": kind, "sent_at": moment}])


def prune(session: Session) -> None:
    """Forget those of what is forgotten."""
    subject = TransitionNoticeRow.subject_uuid
    gone = ~exists().where(PlanRow.uuid == subject) & ~exists().where(HostSleepRow.uuid == subject)
    session.execute(delete(TransitionNoticeRow).where(gone), execution_options={"synchronize_session": False})


def _told(session: Session, uuid: str) -> set[str]:
    row = TransitionNoticeRow
    return set(session.execute(select(row.kind).where(row.subject_uuid == uuid)).scalars())


def _ended(uuid: InstrumentedAttribute[str]) -> Exists:
    row = TransitionNoticeRow
    return exists().where(row.subject_uuid == uuid, row.kind.in_((END, ERROR)))
