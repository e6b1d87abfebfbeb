"""Keys in escrow, in SQL: one row for each buffer and borrower. Called inside a transaction of the ledger."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import delete, exists, insert, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.models import BufferRow, EscrowedKeyRow, table
from pondstack.domain.escrow import EscrowedKey
from pondstack.domain.lending import Buffer

_AT_ONCE = 500
_ROWS = table(EscrowedKeyRow)
_WITHOUT_KEY = (
    EscrowedKeyRow.incarnation,
    EscrowedKeyRow.index,
    EscrowedKeyRow.borrower,
    EscrowedKeyRow.generation,
    EscrowedKeyRow.sealing_key,
)


def put(session: Session, items: Sequence[EscrowedKey]) -> None:
    """Add keys, each in the place of the one that its borrower has there."""
    by_place: dict[tuple[str, str], list[EscrowedKey]] = {}
    for item in items:
        by_place.setdefault((item.incarnation, item.borrower), []).append(item)
    for (incarnation, borrower), mine in by_place.items():
        for part in _parts(mine):
            at = [item.index for item in part]
            session.execute(delete(_ROWS).where(*_at(incarnation, at), EscrowedKeyRow.borrower == borrower))
            session.execute(insert(EscrowedKeyRow), [_values(item) for item in part])


def of_lender(session: Session, incarnation: str) -> list[EscrowedKey]:
    """Return the keys of one life of a lender, without what is sealed, by index and borrower."""
    query = select(*_WITHOUT_KEY).where(EscrowedKeyRow.incarnation == incarnation)
    rows = session.execute(query.order_by(EscrowedKeyRow.index, EscrowedKeyRow.borrower))
    return [EscrowedKey(*row) for row in rows]


def of_borrower(session: Session, borrower: str) -> list[EscrowedKey]:
    """Return the keys of a borrower, without what is sealed, by incarnation and index."""
    query = select(*_WITHOUT_KEY).where(EscrowedKeyRow.borrower == borrower)
    rows = session.execute(query.order_by(EscrowedKeyRow.incarnation, EscrowedKeyRow.index))
    return [EscrowedKey(*row) for row in rows]


def sealed(session: Session, borrower: str, incarnation: str, indexes: Iterable[int]) -> list[EscrowedKey]:
    """Return a borrower's keys of buffers of one life of a lender, with what is sealed, by index."""
    query = select(EscrowedKeyRow).where(*_at(incarnation, indexes), EscrowedKeyRow.borrower == borrower)
    return [_to_domain(row) for row in session.execute(query.order_by(EscrowedKeyRow.index)).scalars()]


def sealed_otherwise(session: Session, sealing_key: str, limit: int) -> list[EscrowedKey]:
    """Return some keys that are sealed with another key than this one."""
    query = select(EscrowedKeyRow).where(EscrowedKeyRow.sealing_key != sealing_key)
    order = (EscrowedKeyRow.incarnation, EscrowedKeyRow.index, EscrowedKeyRow.borrower)
    return [_to_domain(row) for row in session.execute(query.order_by(*order).limit(limit)).scalars()]


def disclose(session: Session, items: Iterable[Buffer], borrower: str) -> None:
    """Keep the keys of buffers that a borrower gets, for their next generation.

    Also those of others, whom their consumer may move to. Those of a former one are of no use.
    """
    del borrower
    for incarnation, generation, indexes in _by_generation(items):
        at = (*_at(incarnation, indexes), EscrowedKeyRow.generation == generation)
        session.execute(update(_ROWS).where(*at).values(generation=generation + 1))


def remove(session: Session, items: Iterable[Buffer]) -> None:
    """Delete all keys of buffers."""
    for incarnation, _, indexes in _by_generation(items):
        session.execute(delete(_ROWS).where(*_at(incarnation, indexes)))


def remove_borrower(session: Session, borrower: str) -> None:
    """Delete all keys of a borrower."""
    session.execute(delete(_ROWS).where(EscrowedKeyRow.borrower == borrower))


def remove_orphans(session: Session) -> int:
    """Delete keys of buffers that are not there any more; a leader of the former release leaves some. How many."""
    there = exists().where(BufferRow.incarnation == EscrowedKeyRow.incarnation, BufferRow.index == EscrowedKeyRow.index)
    gone = session.execute(delete(_ROWS).where(~there))
    assert isinstance(gone, CursorResult)
    return int(gone.rowcount)


def _at(incarnation: str, indexes: Iterable[int]) -> tuple[Any, Any]:
    return EscrowedKeyRow.incarnation == incarnation, EscrowedKeyRow.index.in_(sorted(indexes))


def _parts(items: list[EscrowedKey]) -> Iterator[list[EscrowedKey]]:
    return (items[at : at + _AT_ONCE] for at in range(0, len(items), _AT_ONCE))


def _values(item: EscrowedKey) -> dict[str, Any]:
    return {
        "incarnation": item.incarnation,
        "index": item.index,
        "borrower": item.borrower,
        "generation": item.generation,
        "sealing_key": item.sealing_key,
        "sealed": item.sealed,
    }


def _to_domain(row: EscrowedKeyRow) -> EscrowedKey:
    return EscrowedKey(row.incarnation, row.index, row.borrower, row.generation, row.sealing_key, row.sealed)


def _by_generation(items: Iterable[Buffer]) -> Iterator[tuple[str, int, list[int]]]:
    found: dict[tuple[str, int], list[int]] = {}
    for item in items:
        found.setdefault((item.incarnation, item.generation), []).append(item.index)
    return ((incarnation, generation, indexes) for (incarnation, generation), indexes in found.items())
