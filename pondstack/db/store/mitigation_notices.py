"""Which notifications of mitigations were sent, in SQL. Each function is a part of the caller's transaction."""

from sqlalchemy import and_, delete, exists, or_, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.upsert import upsert
from pondstack.db.models import MitigationNoticeRow, MitigationRow, table
from pondstack.db.store import mitigations
from pondstack.domain.mitigation import MitigationState
from pondstack.ledger.records import MitigationRecord

START, END, ERROR = "start", "end", "error"
AT_A_TIME = 100


def pending(session: Session) -> list[tuple[MitigationRecord, str]]:
    """Return mitigations of which nobody was told, with what to tell: the oldest first, start before end."""
    row, notice = MitigationRow, MitigationNoticeRow
    same = notice.mitigation_uuid == row.uuid
    untold = or_(
        ~exists().where(same, notice.kind == START),
        and_(row.ended_at.is_not(None), ~exists().where(same, notice.kind.in_((END, ERROR)))),
    )
    query = select(row.uuid).where(untold).order_by(row.created_at, row.uuid).limit(AT_A_TIME)
    found = []
    for uuid in session.execute(query).scalars().all():
        record = mitigations.record(session, uuid)
        told = set(session.execute(select(notice.kind).where(notice.mitigation_uuid == uuid)).scalars())
        if START not in told:
            found.append((record, START))
        if record.ended_at is not None:
            found.append((record, ERROR if record.state is MitigationState.FAILED else END))
    return found


def note(session: Session, mitigation_uuid: str, kind: str) -> None:
    """Remember that one was sent."""
    moment = session.execute(select(now_seconds())).scalar_one()
    upsert(
        session,
        table(MitigationNoticeRow),
        [{"mitigation_uuid": mitigation_uuid, "kind": kind, "sent_at": moment}],
    )


def prune(session: Session) -> None:
    """Forget those of mitigations that are forgotten."""
    gone = ~exists().where(MitigationRow.uuid == MitigationNoticeRow.mitigation_uuid)
    session.execute(delete(MitigationNoticeRow).where(gone), execution_options={"synchronize_session": False})
