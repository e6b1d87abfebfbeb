"""The database's clock as an SQL expression: seconds since the epoch, with fractions, the same on every dialect.

Ages and leases are judged by this clock alone, so that no two machines' clocks are ever compared.
"""

from typing import Any

from sqlalchemy import Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction


class now_seconds(GenericFunction[float]):
    """The present moment of the database server; moves on within a transaction."""

    type = Float(53)
    inherit_cache = True


@compiles(now_seconds)
def _unknown(_element: Any, compiler: Any, **_: Any) -> str:
    raise NotImplementedError(f"no clock for {compiler.dialect.name}; use SQLite, MariaDB or PostgreSQL")


@compiles(now_seconds, "sqlite")
def _sqlite(_element: Any, _compiler: Any, **_: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now_seconds, "mysql")
@compiles(now_seconds, "mariadb")
def _mysql(_element: Any, _compiler: Any, **_: Any) -> str:
    return "(UNIX_TIMESTAMP(SYSDATE(6)) + 0.0e0)"


@compiles(now_seconds, "postgresql")
def _postgresql(_element: Any, _compiler: Any, **_: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
