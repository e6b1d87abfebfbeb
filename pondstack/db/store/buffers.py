"""Lenders, their buffers and who borrows them, in SQL. Called inside a transaction of the ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import delete, exists, insert, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import BufferRow, HostRow, LenderRow, RemoteAllocationRow, table
from pondstack.domain.causes import stored
from pondstack.domain.lending import Buffer, Lender, LenderKind, RemoteAllocation
from pondstack.domain.states import SliceState
from pondstack.ledger.moves import Change
from pondstack.ledger.store import CompareAndSetLost

_AT_ONCE = 500


def lender(session: Session, host: str) -> Lender | None:
    """Return a lender, None when the host has never lent anything."""
    row = session.get(LenderRow, host)
    return None if row is None else lender_of(row)


def put_lender(session: Session, item: Lender) -> None:
    """Add a lender, or write down what it is now. It stays until its host is removed: `sequence` tells what is late."""
    values = {name: value for name, value in asdict(item).items() if name != "host"}
    if session.execute(select(LenderRow.host).where(LenderRow.host == item.host)).scalar_one_or_none() is None:
        session.execute(insert(table(LenderRow)).values(host=item.host, created_at=now_seconds(), **values))
    else:
        session.execute(update(table(LenderRow)).where(table(LenderRow).c.host == item.host).values(**values))


def remove_lender(session: Session, host: str) -> None:
    """Delete a lender; it has no buffers."""
    session.execute(delete(table(LenderRow)).where(LenderRow.host == host))


def add(session: Session, items: Sequence[Buffer]) -> None:
    """Add buffers, all of one lender."""
    moment = session.execute(select(now_seconds())).scalar_one()
    rows = [
        {**{name: value for name, value in asdict(item).items() if name not in _OF_LENDER}, "changed_at": moment}
        for item in items
    ]
    for start in range(0, len(rows), _AT_ONCE):
        session.execute(insert(BufferRow), rows[start : start + _AT_ONCE])


def of_lender(session: Session, host: str) -> list[Buffer]:
    """Return the buffers of a lender by index, those of a former incarnation first."""
    return _found(session, BufferRow.lender == host)


def of_allocation(session: Session, allocation_uuid: str) -> list[Buffer]:
    """Return the buffers that point at an allocation."""
    return _found(session, BufferRow.allocation_uuid == allocation_uuid)


def of_heir(session: Session, allocation_uuid: str) -> list[Buffer]:
    """Return the buffers that are being handed over to an allocation."""
    return _found(session, BufferRow.heir == allocation_uuid)


def of_heirs(session: Session, host: str) -> list[Buffer]:
    """Return the buffers that are being handed over to allocations of a host."""
    mine = select(RemoteAllocationRow.uuid).where(RemoteAllocationRow.host == host)
    return _found(session, BufferRow.heir.in_(mine))


def of_borrower(session: Session, host: str) -> list[Buffer]:
    """Return the buffers that a host owns, or that are aside because of it."""
    return _found(session, BufferRow.host == host)


def free(session: Session) -> list[Buffer]:
    """Return all free buffers."""
    return _found(session, BufferRow.state == SliceState.FREE)


def unacknowledged(session: Session, seconds: float) -> list[Buffer]:
    """Return the buffers that have been ASSIGNING for longer than that."""
    late = now_seconds() - BufferRow.changed_at > seconds
    return _found(session, BufferRow.state == SliceState.ASSIGNING, late)


def of_unacknowledged_heirs(session: Session, seconds: float) -> list[Buffer]:
    """Return the buffers that were to be handed over to a loan which is older than that and was never acknowledged."""
    loan = RemoteAllocationRow
    late = (now_seconds() - loan.created_at > seconds) & loan.acknowledged.is_not(True)
    return _found(session, BufferRow.heir.in_(select(loan.uuid).where(late)))


def everything(session: Session) -> list[Buffer]:
    """Return all buffers."""
    return _found(session, BufferRow.state.is_not(None))


def borrowers(session: Session, seconds: float) -> list[str]:
    """Return the hosts that say what they borrow, within that time, and that may have memory, by name."""
    late = silent(session, seconds)
    query = select(HostRow.name, HostRow.borrowed).where(HostRow.enabled).order_by(HostRow.name)
    return [name for name, borrowed in session.execute(query) if borrowed is not None and name not in late]


def silent(session: Session, seconds: float) -> set[str]:
    """Return the hosts whose agents are silent for longer than that, and those that are fenced."""
    late = (now_seconds() - HostRow.last_heartbeat > seconds) | HostRow.fenced_at.is_not(None)
    return set(session.execute(select(HostRow.name).where(late)).scalars())


def links(session: Session) -> dict[str, frozenset[tuple[str, str]]]:
    """Return whom hosts are linked to, as lender and incarnation, of the hosts that say it in their newest reports."""
    rows = session.execute(select(HostRow.name, HostRow.borrowed).where(HostRow.borrowed.is_not(None)))
    told = {name: (borrowed or {}).get("links") for name, borrowed in rows}
    return {name: frozenset((lender, life) for lender, life in each) for name, each in told.items() if each is not None}


def mark(session: Session, items: Iterable[Buffer], values: Mapping[str, Any]) -> None:
    """Set what is no matter of states of buffers; `generation` too, which its maker of keys counts."""
    for incarnation, indexes in _by_incarnation(items).items():
        session.execute(
            update(table(BufferRow))
            .where(BufferRow.incarnation == incarnation, BufferRow.index.in_(indexes))
            .values(values)
        )


def remove(session: Session, items: Iterable[Buffer]) -> None:
    """Delete buffers: they are their lender's own again, or gone with it."""
    for incarnation, indexes in _by_incarnation(items).items():
        session.execute(
            delete(table(BufferRow)).where(BufferRow.incarnation == incarnation, BufferRow.index.in_(indexes))
        )


def add_allocation(session: Session, uuid: str, operation_id: str, asked: Mapping[str, Any]) -> None:
    """Add an allocation; `asked` is what the request says of consumer, host and guarantee."""
    session.execute(
        insert(table(RemoteAllocationRow)).values(
            uuid=uuid, operation_id=operation_id, created_at=now_seconds(), **asked
        )
    )


def acknowledge(session: Session, uuid: str) -> None:
    """Note that the borrower of an allocation has its keys, those too of what is being handed over to it."""
    rows, buffers = table(RemoteAllocationRow), table(BufferRow)
    session.execute(update(rows).where(rows.c.uuid == uuid).values(acknowledged=True))
    session.execute(update(buffers).where(buffers.c.heir == uuid).values(changed_at=now_seconds()))


def allocation(session: Session, uuid: str) -> RemoteAllocation | None:
    """Return an allocation, None when there is none."""
    row = session.get(RemoteAllocationRow, uuid)
    return None if row is None else allocation_of(row)


def allocations(session: Session) -> list[RemoteAllocation]:
    """Return all allocations by UUID."""
    query = select(RemoteAllocationRow).order_by(RemoteAllocationRow.uuid)
    return [allocation_of(row) for row in session.execute(query).scalars()]


def unguaranteed(session: Session) -> set[str]:
    """Return the allocations that may be taken back, by UUID."""
    query = select(RemoteAllocationRow.uuid).where(RemoteAllocationRow.guaranteed.is_(False))
    return set(session.execute(query).scalars())


def mark_claims(session: Session, claimed: Sequence[str], unclaimed: Sequence[str]) -> None:
    """Note which allocations Placement backs with a claim; an unclaimed one keeps the moment of its first note."""
    rows = table(RemoteAllocationRow)
    changes = (
        (rows.c.unclaimed_since.is_not(None), claimed, None),
        (rows.c.unclaimed_since.is_(None), unclaimed, now_seconds()),
    )
    for condition, uuids, value in changes:
        if uuids:
            session.execute(update(rows).where(rows.c.uuid.in_(uuids), condition).values(unclaimed_since=value))


def drop_empty(session: Session, uuids: Iterable[str]) -> None:
    """Delete those of the allocations that no buffer points at any more."""
    rows = table(RemoteAllocationRow)
    mine = exists().where(
        (BufferRow.allocation_uuid == RemoteAllocationRow.uuid) | (BufferRow.heir == RemoteAllocationRow.uuid)
    )
    session.execute(delete(rows).where(rows.c.uuid.in_(sorted(uuids)), ~mine))


def lender_of(row: LenderRow) -> Lender:
    """Return the row as a value of the domain."""
    return Lender(row.host, row.incarnation, LenderKind(row.kind), row.buffer_mib, row.sequence)


def allocation_of(row: RemoteAllocationRow) -> RemoteAllocation:
    """Return the row as a value of the domain."""
    asked = row.consumer_uuid, row.host, row.guaranteed, row.project_id, row.user_id
    return RemoteAllocation(row.uuid, *asked, acknowledged=bool(row.acknowledged))


_OF_LENDER = ("kind", "size_mib")


def _found(session: Session, *conditions: Any) -> list[Buffer]:
    query = (
        select(BufferRow, LenderRow.kind, LenderRow.incarnation == BufferRow.incarnation, LenderRow.buffer_mib)
        .join(LenderRow, LenderRow.host == BufferRow.lender)
        .where(*conditions)
        .order_by(BufferRow.lender, LenderRow.incarnation == BufferRow.incarnation, BufferRow.index)
    )
    return [to_domain(row, kind, size_mib) for row, kind, _, size_mib in session.execute(query)]


def to_domain(row: BufferRow, kind: str, size_mib: int) -> Buffer:
    """Return the row as a value of the domain."""
    state = SliceState(row.state)
    return Buffer(
        lender=row.lender,
        incarnation=row.incarnation,
        index=row.index,
        offset_mib=row.offset_mib,
        size_mib=size_mib,
        kind=LenderKind(kind),
        state=state,
        host=row.host,
        allocation_uuid=row.allocation_uuid,
        generation=row.generation,
        promised_to=row.promised_to,
        leaving=row.leaving,
        epoch=row.epoch,
        reason=row.reason,
        cause=stored(state, row.cause, None, row.reason).cause,
        admitted=row.admitted,
        escrowed=row.escrowed,
        heir=row.heir,
        shared=row.shared,
    )


def _by_incarnation(items: Iterable[Buffer]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for item in items:
        found.setdefault(item.incarnation, []).append(item.index)
    return found


def swap(session: Session, change: Change[Buffer]) -> None:
    """Carry a change out, all or nothing; raises CompareAndSetLost: a buffer is no longer as it was read."""
    after, rows = change.after, table(BufferRow)
    changed = session.execute(
        update(rows)
        .where(
            BufferRow.incarnation == after.incarnation,
            BufferRow.index.in_(change.indexes),
            BufferRow.state == change.state,
            BufferRow.allocation_uuid.is_(None) if change.owner is None else BufferRow.allocation_uuid == change.owner,
        )
        .values(
            state=after.state,
            host=after.host,
            allocation_uuid=after.allocation_uuid,
            generation=rows.c.generation + (1 if change.assigned else 0),
            epoch=after.epoch,
            reason=after.reason,
            cause=after.cause,
            changed_at=now_seconds(),
        )
    )
    assert isinstance(changed, CursorResult)
    if changed.rowcount != len(change.indexes):
        raise CompareAndSetLost(f"buffers {change.indexes} of lender {after.lender} are no longer {change.state}")
