"""Reads of loans in SQL: pondstack.ledger.reader.LoanReader."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.models import BufferRow, LenderRow, RemoteAllocationRow
from pondstack.db.read.records import LEAST_ADVANCED
from pondstack.db.store.buffers import to_domain
from pondstack.domain.errors import NotFound
from pondstack.domain.lending import Buffer
from pondstack.domain.states import OWNED, SliceState
from pondstack.ledger.loan_records import LentRun, LoanRecord


class SqlLoans:
    """Each method is one read-only transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def loans(
        self,
        *,
        project_id: str | None = None,
        consumer_uuid: str | None = None,
        host: str | None = None,
        lender: str | None = None,
        guaranteed: bool | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[LoanRecord]:
        """List loans by UUID; raises NotFound for an unknown marker."""
        wanted = {
            RemoteAllocationRow.project_id: project_id,
            RemoteAllocationRow.consumer_uuid: consumer_uuid,
            RemoteAllocationRow.host: host,
            RemoteAllocationRow.guaranteed: guaranteed,
        }
        query = select(RemoteAllocationRow).order_by(RemoteAllocationRow.uuid)
        for column, value in wanted.items():
            if value is not None:
                query = query.where(column == value)
        if lender is not None:
            of_lender = exists().where(
                BufferRow.allocation_uuid == RemoteAllocationRow.uuid, BufferRow.lender == lender
            )
            query = query.where(of_lender)
        if marker is not None:
            query = query.where(RemoteAllocationRow.uuid > marker)

        def work(session: Session) -> list[LoanRecord]:
            if marker is not None:
                _need(session, marker, project_id)
            return _records(session, list(session.execute(query.limit(limit)).scalars()))

        return self._database.read(work)

    def loan(self, uuid: str) -> LoanRecord:
        """Return one; raises NotFound."""

        def work(session: Session) -> LoanRecord:
            row = session.get(RemoteAllocationRow, uuid)
            if row is None:
                raise NotFound(f"there is no loan {uuid}; list the loans")
            return _records(session, [row])[0]

        return self._database.read(work)


def runs(buffers: Iterable[Buffer], borrower: str) -> tuple[LentRun, ...]:
    """Return the buffers of a loan, adjacent ones that are alike as one. They come by lender, incarnation and index."""
    numbered = enumerate(buffers)
    return tuple(
        _run([item for _, item in group], borrower)
        for _, group in groupby(numbered, key=lambda pair: (pair[1].index - pair[0], _alike(pair[1], borrower)))
    )


def _alike(item: Buffer, borrower: str) -> tuple[Any, ...]:
    disclosed = item.escrowed and item.promised_to == borrower
    return item.lender, item.incarnation, item.state, item.escrowed, disclosed, item.leaving


def _run(items: list[Buffer], borrower: str) -> LentRun:
    first = items[0]
    lender, incarnation, state, escrowed, disclosed, leaving = _alike(first, borrower)
    mib = sum(item.size_mib for item in items)
    kind, start, count = str(first.kind), first.index, len(items)
    return LentRun(lender, incarnation, kind, start, count, mib, str(state), escrowed, disclosed, leaving)


def _need(session: Session, marker: str, project_id: str | None) -> None:
    """Raise NotFound unless there is such a loan. To one project, another's is as unknown as one that is not there."""
    row = session.get(RemoteAllocationRow, marker)
    if row is None or project_id not in (None, row.project_id):
        raise NotFound(f"there is no loan {marker}; start again without a marker")


def _records(session: Session, rows: list[RemoteAllocationRow]) -> list[LoanRecord]:
    mine: dict[str, list[Buffer]] = {row.uuid: [] for row in rows}
    query = select(BufferRow, LenderRow.kind, LenderRow.buffer_mib).join(LenderRow, LenderRow.host == BufferRow.lender)
    query = query.where(BufferRow.allocation_uuid.in_(list(mine)))
    order = (BufferRow.lender, BufferRow.incarnation, BufferRow.index)
    for row, kind, size_mib in session.execute(query.order_by(*order)):
        mine[row.allocation_uuid].append(to_domain(row, kind, size_mib))
    return [_record(row, mine[row.uuid]) for row in rows]


def _record(row: RemoteAllocationRow, buffers: list[Buffer]) -> LoanRecord:
    states = [item.state for item in buffers] or [SliceState.SANITIZING]
    return LoanRecord(
        uuid=row.uuid,
        consumer_uuid=row.consumer_uuid,
        host=row.host,
        guaranteed=row.guaranteed,
        project_id=row.project_id,
        user_id=row.user_id,
        state=str(min(states, key=LEAST_ADVANCED.index)),
        lent_mib=sum(item.size_mib for item in buffers if item.state in OWNED),
        buffers=runs(buffers, row.host),
        created_at=row.created_at,
    )
