"""What the tables have in common: base, names and blobs."""

from typing import cast

from sqlalchemy import LargeBinary, String, Table
from sqlalchemy.dialects.mysql import MEDIUMBLOB
from sqlalchemy.orm import DeclarativeBase

UUID = String(36)
NAME = String(255)
BLOB = LargeBinary().with_variant(MEDIUMBLOB(), "mysql", "mariadb")
"""16 MiB: MariaDB's plain BLOB takes 64 KiB."""


class Base(DeclarativeBase):
    """Declarative base; alembic compares against its metadata."""


def table(model: type[Base]) -> Table:
    """Return a model's table: statements on it skip the ORM, which doubles the cost of a small one."""
    return cast(Table, model.__table__)
