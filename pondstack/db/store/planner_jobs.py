"""Jobs of the planner in SQL. Each function is a part of the caller's transaction; times are the database's.

What becomes of a job is written only while it is in the state that the writer takes it to be in: one that was
cancelled, or deleted, stays so.
"""

import json
import zlib
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import PlannerJobRow, PlannerReportRow, table
from pondstack.db.store.newest_first import newest_first
from pondstack.domain.errors import Conflict, NotFound
from pondstack.domain.planner_job import OPEN, JobState, PlannerJob, PlannerReport

MOST_OF_A_REASON = 1000
MOST_OF_A_SUMMARY = 16_000
MOST_BYTES = 8 * 1024 * 1024
"""Of each half of a report, compressed: databases refuse larger packets (max_allowed_packet of MariaDB: 16 MiB)."""


def add(session: Session, item: PlannerJob) -> None:
    """Add one that is queued now."""
    values = {name: getattr(item, name) for name in ("uuid", "user_id", "project_id", "done", "total", "tries")}
    values |= {"controller": item.controller, "reason": item.reason, "summary": item.summary}
    session.execute(
        insert(table(PlannerJobRow)).values(
            **values, state=str(item.state), asked=dict(item.order), created_at=now_seconds()
        )
    )


def unended(session: Session) -> list[PlannerJob]:
    """Return those that are running, or said to be, and then those that wait, the oldest first."""
    row = PlannerJobRow
    query = select(row).where(row.state.in_([str(state) for state in OPEN])).order_by(row.created_at, row.uuid)
    found = [_job(item) for item in session.execute(query).scalars()]
    return sorted(found, key=lambda job: job.state is not JobState.RUNNING)


def waiting(session: Session) -> int:
    """Return how many are queued or running."""
    states = [str(state) for state in OPEN]
    query = select(func.count()).select_from(PlannerJobRow).where(PlannerJobRow.state.in_(states))
    return int(session.execute(query).scalar_one())


def begin(session: Session, uuid: str, controller: str, reason: str) -> bool:
    """Have one run, from its beginning; returns whether it did: not if it has ended."""
    row = table(PlannerJobRow).c
    values = {"state": str(JobState.RUNNING), "controller": controller, "reason": reason[:MOST_OF_A_REASON]}
    changes = {**values, "tries": row.tries + 1, "done": 0, "total": 0, "begun_at": now_seconds()}
    return _change(session, uuid, [str(state) for state in OPEN], changes)


def progress(session: Session, uuid: str, done: int, total: int) -> bool:
    """Write down how far one is; returns whether it still runs."""
    return _change(session, uuid, [str(JobState.RUNNING)], {"done": done, "total": total})


def fail(session: Session, uuid: str, reason: str) -> bool:
    """Have one fail; returns whether it did: not if it has ended."""
    values = {"state": str(JobState.FAILED), "reason": reason[:MOST_OF_A_REASON], "ended_at": now_seconds()}
    return _change(session, uuid, [str(state) for state in OPEN], values)


def end(session: Session, uuid: str, summary: str, report: PlannerReport) -> bool:
    """Have one end with its report; returns whether it did. Raises Conflict for a report that no row takes."""
    row = table(PlannerJobRow).c
    values = {"state": str(JobState.ENDED), "done": row.total, "reason": "", "ended_at": now_seconds()}
    if not _change(session, uuid, [str(JobState.RUNNING)], {**values, "summary": summary[:MOST_OF_A_SUMMARY]}):
        return False
    answers, page = (zlib.compress(text.encode()) for text in (json.dumps(dict(report.answers)), report.html))
    if max(len(answers), len(page)) > MOST_BYTES:
        raise Conflict(f"its report is larger than {MOST_BYTES} bytes: ask for fewer seeds, sizes or policies")
    session.execute(insert(table(PlannerReportRow)).values(job_uuid=uuid, answers=answers, page=page))
    return True


def cancel(session: Session, uuid: str) -> None:
    """Put an end to one. Raises NotFound, Conflict where it has ended."""
    values = {"state": str(JobState.CANCELLED), "reason": "cancelled by an operator", "ended_at": now_seconds()}
    if not _change(session, uuid, [str(state) for state in OPEN], values):
        raise Conflict(f"planner job {uuid} is {record(session, uuid).state} already")


def remove(session: Session, uuid: str) -> None:
    """Forget one, and its report. Raises NotFound, Conflict where it has not ended."""
    found = record(session, uuid)
    if found.is_open:
        raise Conflict(f"planner job {uuid} is {found.state}; cancel it first")
    _remove(session, [uuid])


def prune(session: Session, keep_seconds: float) -> int:
    """Forget those that ended longer ago; returns how many."""
    row = PlannerJobRow
    gone = list(session.execute(select(row.uuid).where(row.ended_at < now_seconds() - keep_seconds)).scalars())
    _remove(session, gone)
    return len(gone)


def record(session: Session, uuid: str) -> PlannerJob:
    """Return one; raises NotFound."""
    row = session.get(PlannerJobRow, uuid)
    if row is None:
        raise NotFound(f"there is no planner job {uuid}; list the jobs")
    return _job(row)


def records(
    session: Session, *, state: str | None = None, limit: int | None = None, marker: str | None = None
) -> list[PlannerJob]:
    """Return jobs, the newest first; raises NotFound for an unknown marker."""
    query = select(PlannerJobRow)
    if state is not None:
        query = query.where(PlannerJobRow.state == state)
    query = newest_first(session, query, PlannerJobRow, "planner job", marker)
    return [_job(row) for row in session.execute(query.limit(limit)).scalars()]


def report(session: Session, uuid: str) -> PlannerReport:
    """Return the report of one; raises NotFound where there is none (yet)."""
    row = session.get(PlannerReportRow, uuid)
    if row is None:
        state = record(session, uuid).state
        raise NotFound(f"planner job {uuid} is {state}, and only one that has ended has a report")
    return PlannerReport(json.loads(zlib.decompress(row.answers)), zlib.decompress(row.page).decode())


def _change(session: Session, uuid: str, states: list[str], values: dict[str, Any]) -> bool:
    rows = table(PlannerJobRow)
    changed = session.execute(update(rows).where(rows.c.uuid == uuid, rows.c.state.in_(states)).values(**values))
    assert isinstance(changed, CursorResult)
    return bool(changed.rowcount)


def _remove(session: Session, uuids: list[str]) -> None:
    for uuid in uuids:
        session.execute(delete(table(PlannerReportRow)).where(table(PlannerReportRow).c.job_uuid == uuid))
        session.execute(delete(table(PlannerJobRow)).where(table(PlannerJobRow).c.uuid == uuid))


def _job(row: PlannerJobRow) -> PlannerJob:
    return PlannerJob(
        uuid=row.uuid,
        state=JobState(row.state),
        order=row.asked,
        user_id=row.user_id,
        project_id=row.project_id,
        done=row.done,
        total=row.total,
        tries=row.tries,
        controller=row.controller,
        reason=row.reason,
        summary=row.summary,
        created_at=row.created_at,
        begun_at=row.begun_at,
        ended_at=row.ended_at,
    )
