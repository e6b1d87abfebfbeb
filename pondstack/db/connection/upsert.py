"""Rows that are written whether they are there or not, in one statement on every dialect."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Insert, Table
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import Session


def upsert(session: Session, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows that give all columns; one with the same primary key is replaced."""
    if rows:
        session.execute(_statement(session.get_bind().dialect.name, table), list(rows))


def _statement(dialect: str, table: Table) -> Insert:
    key = [column.name for column in table.primary_key]
    others = [column.name for column in table.columns if column.name not in key]
    if dialect == "postgresql":
        conflicting = postgresql.insert(table)
        new = {name: conflicting.excluded[name] for name in others}
        return conflicting.on_conflict_do_update(index_elements=key, set_=new)
    if dialect == "sqlite":
        present = sqlite.insert(table)
        return present.on_conflict_do_update(index_elements=key, set_={name: present.excluded[name] for name in others})
    duplicate = mysql.insert(table)
    return duplicate.on_duplicate_key_update({name: duplicate.inserted[name] for name in others})
