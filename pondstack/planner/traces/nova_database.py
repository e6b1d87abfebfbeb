"""Databases of Nova's cells, or dumps of them that were restored: instances, also archived ones, and compute nodes.

Only SELECTs are sent, in a transaction that is read-only where the server has such. The database of Nova's API has no
instances: give each cell's.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.planner.traces import instances
from pondstack.planner.traces.imported import Hosts, Imported, Options
from pondstack.planner.traces.instances import Instance, Window

Columns = Mapping[str, type[sa.types.TypeEngine[Any]]]
NAME = "database"
TABLES = ("instances", "shadow_instances")
"""Archived rows go to the second one (`nova-manage db archive_deleted_rows`)."""
NODES = "compute_nodes"
READ_ONLY = {
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
}
_INSTANCE: Columns = {
    "uuid": sa.String,
    "project_id": sa.String,
    "vcpus": sa.Integer,
    "memory_mb": sa.Integer,
    "launched_at": sa.DateTime,
    "terminated_at": sa.DateTime,
    "deleted_at": sa.DateTime,
    "deleted": sa.Integer,
}
_NODE: Columns = {
    "vcpus": sa.Integer,
    "memory_mb": sa.Integer,
    "cpu_allocation_ratio": sa.Float,
    "ram_allocation_ratio": sa.Float,
    "deleted": sa.Integer,
}


def urls(source: str) -> list[str]:
    """Return the URLs that a source means: itself, or the lines of a file, which keeps passwords off command lines."""
    if "://" in source:
        return [source]
    found = [line.strip() for line in Path(source).read_text().splitlines() if line.strip() and line[0] != "#"]
    if not found:
        raise BadRequest(f"{source} has no URL: one a line, such as mysql+pymysql://user:password@host/nova_cell1")
    return found


def read(source: str, window: Window, options: Options) -> Imported:
    """Read the cells. Raises BadRequest for URLs and databases that are none of Nova's, Unavailable, OSError."""
    found: list[Instance] = []
    hosts, notes = Hosts(0, 0, 0), []
    for url in urls(source):
        try:
            engine = _engine(url)
            name = engine.url.render_as_string(hide_password=True)
            with engine.connect() as connection:
                _read_only(connection)
                present = set(sa.inspect(connection).get_table_names())
                if TABLES[0] not in present:
                    raise BadRequest(f"{name} has no table {TABLES[0]}: give the database of a cell of Nova")
                tables = [table for table in TABLES if table in present]
                found += [item for table in tables for item in _instances(connection, table, window)]
                hosts = _sum(hosts, _hosts(connection) if NODES in present else Hosts(0, 0, 0))
                notes.append(f"{name}: tables {', '.join(tables)}")
        except ArgumentError as error:
            raise BadRequest(f"{error}; wanted: mysql+pymysql://user:password@host/nova_cell1") from error
        except (ValueError, TypeError, OverflowError) as error:
            # SQLite keeps what a column is not of: a server that is guessed from it would be worse than none.
            where = make_url(url).render_as_string(hide_password=True)
            raise BadRequest(f"{where} has a value that is none of Nova's: {error}; restore it again") from error
        except SQLAlchemyError as error:
            raise Unavailable(f"{make_url(url).render_as_string(hide_password=True)}: {error}") from error
    return instances.imported(NAME, found, window, options, NAME, notes, hosts if hosts.number else None)


def _engine(url: str) -> Engine:
    made = make_url(url)
    if made.get_backend_name() == "sqlite" and made.database and not Path(made.database).is_file():
        # SQLite would make a new, empty database.
        raise FileNotFoundError(f"{made.database}: no such database")
    return sa.create_engine(made)


def _read_only(connection: Connection) -> None:
    said = READ_ONLY.get(connection.dialect.name)
    if said is not None:
        connection.exec_driver_sql(said)
        connection.commit()


def _table(name: str, columns: Columns) -> sa.TableClause:
    return sa.table(name, *(sa.column(column, kind) for column, kind in columns.items()))


def _instances(connection: Connection, name: str, window: Window) -> Iterator[Instance]:
    table = _table(name, _INSTANCE)
    since = window.since.astimezone(UTC).replace(tzinfo=None)
    ended = sa.func.coalesce(table.c.terminated_at, table.c.deleted_at)
    query = sa.select(table).where(sa.or_(table.c.deleted == 0, ended.is_(None), ended >= since))
    for row in connection.execution_options(yield_per=10_000).execute(query):
        gone = row.deleted != 0 or row.terminated_at is not None
        yield Instance(
            uuid=row.uuid if row.uuid is None else _text(row.uuid),
            project_id=_text(row.project_id or ""),
            vcpus=row.vcpus if row.vcpus is None else float(row.vcpus),
            memory_mib=row.memory_mb if row.memory_mb is None else float(row.memory_mb),
            started=_utc(row.launched_at),
            ended=_utc(row.terminated_at or row.deleted_at) if gone else None,
        )


def _hosts(connection: Connection) -> Hosts:
    table = _table(NODES, _NODE)
    nodes: Sequence[sa.Row[Any]] = connection.execute(sa.select(table).where(table.c.deleted == 0)).all()
    # 0 or nothing: nova-compute has not told its ratio yet.
    vcpus = sum(row.vcpus * (row.cpu_allocation_ratio or 1.0) for row in nodes)
    memory = sum(row.memory_mb * (row.ram_allocation_ratio or 1.0) for row in nodes)
    return Hosts(len(nodes), int(vcpus), int(memory))


def _sum(one: Hosts, other: Hosts) -> Hosts:
    return Hosts(one.number + other.number, one.vcpus + other.vcpus, one.memory_mib + other.memory_mib)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _utc(moment: datetime | None) -> datetime | None:
    """Nova writes UTC without saying so."""
    return None if moment is None else moment.replace(tzinfo=UTC)
