"""Rows in the order in which lists show them that grow: the newest first, and from a marker on."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import or_
from sqlalchemy.orm import Session

from pondstack.domain.errors import NotFound


def newest_first(
    session: Session, query: Any, row_class: Any, noun: str, marker: str | None, chosen: Mapping[str, Any] | None = None
) -> Any:
    """Return a query of rows with `uuid` and `created_at`, in that order, after the marker's; raises NotFound.

    `chosen`: columns with the values that the list is of, None: any. A marker that was not chosen is as unknown as one
    that does not exist: it may be another project's.
    """
    query = query.order_by(row_class.created_at.desc(), row_class.uuid)
    if marker is None:
        return query
    row = session.get(row_class, marker)
    if row is None or any(value not in (None, getattr(row, column)) for column, value in (chosen or {}).items()):
        raise NotFound(f"there is no {noun} {marker}; start again without a marker")
    same = (row_class.created_at == row.created_at) & (row_class.uuid > row.uuid)
    return query.where(or_(row_class.created_at < row.created_at, same))
