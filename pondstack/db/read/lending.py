"""Reads of memory that hosts lend, in SQL: what pondstack.db.read.reader.SqlReader answers of it."""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, exists, func, or_, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import BufferRow, HostRow, LenderRow, LendRow, RemoteAllocationRow
from pondstack.db.store.buffers import allocation_of, lender_of, to_domain
from pondstack.db.store.lends import lend_of
from pondstack.domain.causes import stored
from pondstack.domain.errors import BadRequest, NotFound
from pondstack.domain.lending import LenderKind
from pondstack.domain.lent_memory import AgedBuffer, AgedLoan, LentMemory
from pondstack.domain.states import OWNED, SliceState
from pondstack.ledger.records import BufferRecord, LenderRecord


def read_lent(session: Session) -> LentMemory:
    """Return all lenders, buffers and loans."""
    now = session.execute(select(now_seconds())).scalar_one()
    rows = {row.host: row for row in session.execute(select(LenderRow).order_by(LenderRow.host)).scalars()}
    order = (BufferRow.lender, BufferRow.incarnation, BufferRow.index)
    buffers = tuple(
        AgedBuffer(to_domain(row, LenderKind(rows[row.lender].kind), rows[row.lender].buffer_mib), now - row.changed_at)
        for row in session.execute(select(BufferRow).order_by(*order)).scalars()
    )
    loans = session.execute(select(RemoteAllocationRow).order_by(RemoteAllocationRow.uuid)).scalars()
    return LentMemory(
        {host: lender_of(row) for host, row in rows.items()},
        buffers,
        {row.uuid: _aged(row, now) for row in loans},
    )


def _aged(row: RemoteAllocationRow, now: float) -> AgedLoan:
    unclaimed = None if row.unclaimed_since is None else now - row.unclaimed_since
    return AgedLoan(allocation_of(row), now - row.created_at, unclaimed)


def lenders(session: Session, host: str | None, limit: int | None, marker: str | None) -> list[LenderRecord]:
    """List lenders by host, or one; raises NotFound for an unknown marker."""
    if marker is not None and session.get(LenderRow, marker) is None:
        raise NotFound(f"there is no lender {marker}; start again without a marker")
    query = select(LenderRow, HostRow.lending).join(HostRow, HostRow.name == LenderRow.host).order_by(LenderRow.host)
    query = query.where(_lends())
    if host is not None:
        query = query.where(LenderRow.host == host)
    if marker is not None:
        query = query.where(LenderRow.host > marker)
    rows = [tuple(row) for row in session.execute(query if limit is None else query.limit(limit))]
    names = [row.host for row, _ in rows]
    counts, under_way = _counts(session, names), lends(session, names)
    return [_lender(row, reported or {}, counts[row.host], under_way[row.host].lend) for row, reported in rows]


def lender(session: Session, host: str) -> LenderRecord:
    """Return one lender; raises NotFound."""
    found = lenders(session, host, None, None)
    if not found:
        raise _lends_nothing(host)
    return found[0]


def buffers(
    session: Session, host: str, state: str | None, borrower: str | None, limit: int | None, marker: str | None
) -> list[BufferRecord]:
    """List the buffers of a lender by index; raises NotFound for an unknown lender, BadRequest for a bad marker."""
    if session.execute(select(LenderRow.host).where(LenderRow.host == host, _lends())).first() is None:
        raise _lends_nothing(host)
    query = _query().where(BufferRow.lender == host).order_by(BufferRow.index, BufferRow.incarnation)
    if state is not None:
        query = query.where(BufferRow.state == state)
    if borrower is not None:
        query = query.where(BufferRow.host == borrower)
    if marker is not None:
        index, incarnation = _position(marker)
        later = and_(BufferRow.index == index, BufferRow.incarnation > incarnation)
        query = query.where(or_(BufferRow.index > index, later))
    return [_buffer(*row) for row in session.execute(query if limit is None else query.limit(limit))]


def buffer(session: Session, host: str, index: int) -> BufferRecord:
    """Return one buffer of a lender, of its present incarnation where there are two; raises NotFound."""
    query = _query().where(BufferRow.lender == host, BufferRow.index == index)
    found = session.execute(query.order_by((BufferRow.incarnation == LenderRow.incarnation).desc())).first()
    if found is None:
        raise NotFound(f"host {host} lends no buffer {index}; list the buffers of the lender")
    return _buffer(*found)


def borrowing_hosts(session: Session, consumer_uuid: str) -> set[str]:
    """Return the hosts on which a consumer has borrowed."""
    query = select(RemoteAllocationRow.host).where(RemoteAllocationRow.consumer_uuid == consumer_uuid)
    return set(session.execute(query).scalars())


class Lending(NamedTuple):
    """What a host lends in all, what of that may be borrowed, and what it is to lend (None: nothing)."""

    lent_mib: int
    admitted_mib: int
    lend: dict[str, Any] | None


def lends(session: Session, hosts: list[str]) -> dict[str, Lending]:
    """Return what hosts lend, by host."""
    admitted = func.sum(case((BufferRow.admitted, LenderRow.buffer_mib), else_=0))
    sums = select(BufferRow.lender, func.sum(LenderRow.buffer_mib), admitted).join(
        LenderRow, LenderRow.host == BufferRow.lender
    )
    found = {host: (0, 0) for host in hosts}
    for host, *sizes in session.execute(sums.where(BufferRow.lender.in_(hosts)).group_by(BufferRow.lender)):
        found[host] = (int(sizes[0]), int(sizes[1]))
    rows = session.execute(select(LendRow).where(LendRow.host.in_(hosts))).scalars()
    under_way = {row.host: lend_of(row).progress(found[row.host][1]) for row in rows}
    return {host: Lending(*sizes, under_way.get(host)) for host, sizes in found.items()}


class Borrowing(NamedTuple):
    """What a host borrows for guests' memory, and what for their swap disks."""

    guaranteed_mib: int = 0
    best_effort_mib: int = 0


def borrows(session: Session, hosts: list[str]) -> dict[str, Borrowing]:
    """Return what hosts borrow and what is theirs still, by host."""
    guaranteed = func.sum(case((RemoteAllocationRow.guaranteed, LenderRow.buffer_mib), else_=0))
    sums = (
        select(BufferRow.host, guaranteed, func.sum(LenderRow.buffer_mib))
        .join(LenderRow, LenderRow.host == BufferRow.lender)
        .join(RemoteAllocationRow, RemoteAllocationRow.uuid == BufferRow.allocation_uuid)
        .where(BufferRow.host.in_(hosts), BufferRow.state.in_(sorted(OWNED)))
        .group_by(BufferRow.host)
    )
    found = {host: Borrowing(int(kept), int(total - kept)) for host, kept, total in session.execute(sums)}
    return {host: found.get(host, Borrowing()) for host in hosts}


def _lends() -> ColumnElement[bool]:
    """Return whether a host lends something, or has not got all back that it lent; the row of a lender stays."""
    return or_(LenderRow.incarnation != "", exists().where(BufferRow.lender == LenderRow.host))


def _lends_nothing(host: str) -> NotFound:
    return NotFound(
        f"host {host} lends nothing; list the lenders, or have it lend: openstack memory host delegate {host}"
    )


def _query() -> Select[Any]:
    return (
        select(BufferRow, LenderRow, RemoteAllocationRow)
        .join(LenderRow, LenderRow.host == BufferRow.lender)
        .outerjoin(RemoteAllocationRow, RemoteAllocationRow.uuid == BufferRow.allocation_uuid)
    )


def _position(marker: str) -> tuple[int, str]:
    index, _, incarnation = marker.partition(":")
    if not index.isdigit():
        raise BadRequest(f"{marker!r} is no marker of a buffer; start again without one")
    return int(index), incarnation


def _counts(session: Session, hosts: list[str]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {host: dict.fromkeys(map(str, SliceState), 0) for host in hosts}
    totals = select(BufferRow.lender, BufferRow.state, func.count()).where(BufferRow.lender.in_(hosts))
    for host, state, count in session.execute(totals.group_by(BufferRow.lender, BufferRow.state)):
        counts[host][state] = count
    return counts


def _lender(
    row: LenderRow, reported: dict[str, Any], counts: dict[str, int], lend: dict[str, Any] | None
) -> LenderRecord:
    told = [item for item in reported.get("operations", ()) if lend is None or not _same(item, lend)]
    return LenderRecord(
        host=row.host,
        incarnation=row.incarnation,
        kind=row.kind,
        buffer_mib=row.buffer_mib,
        lent_mib=sum(counts.values()) * row.buffer_mib,
        lendable_mib=reported.get("lendable_mib"),
        buffers=counts,
        operations=(*told, *([lend] if lend else ())),
        created_at=row.created_at,
    )


def _same(operation: dict[str, Any], lend: dict[str, Any]) -> bool:
    """Return whether a host tells of its part of what it is to lend: that has not ended before it is admitted."""
    return bool(operation["operation_id"] == lend["operation_id"])


def _buffer(row: BufferRow, of: LenderRow, borrowed: RemoteAllocationRow | None) -> BufferRecord:
    return BufferRecord(
        lender=row.lender,
        incarnation=row.incarnation,
        index=row.index,
        offset_mib=row.offset_mib,
        size_mib=of.buffer_mib,
        kind=of.kind,
        state=row.state,
        host=row.host,
        allocation_uuid=row.allocation_uuid,
        consumer_uuid=borrowed.consumer_uuid if borrowed else None,
        guaranteed=borrowed.guaranteed if borrowed else None,
        generation=row.generation,
        promised_to=row.promised_to,
        leaving=row.leaving,
        epoch=row.epoch,
        reason=row.reason,
        cause=stored(SliceState(row.state), row.cause, None, row.reason).cause,
        changed_at=row.changed_at,
    )
