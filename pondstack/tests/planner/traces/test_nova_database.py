"""Nova's database: its own tables, in SQLite."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.planner.trace import Dropped
from pondstack.planner.traces import nova_database
from pondstack.planner.traces.imported import Hosts, Options
from pondstack.planner.traces.instances import Window

WINDOW = Window(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 3, tzinfo=UTC))
DAY = 86_400
INSTANCE = (
    "uuid text, project_id text, vcpus int, memory_mb int, launched_at datetime, terminated_at datetime,"
    " deleted_at datetime, deleted int"
)
NODE = "vcpus int, memory_mb int, cpu_allocation_ratio float, ram_allocation_ratio float, deleted int"


def moment(day: int) -> str:
    """Return midnight of a day, as Nova writes it."""
    return f"2026-11-{day:02d} 00:00:00.000000" if day else "2026-10-01 00:00:00.000000"


def cell(folder: Path, name: str = "cell1") -> str:
    """Make a cell with one instance of each kind; returns its URL."""
    path = folder / f"{name}.sqlite"
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        for table in ("instances", "shadow_instances"):
            connection.exec_driver_sql(f"CREATE TABLE {table} ({INSTANCE})")
        connection.exec_driver_sql(f"CREATE TABLE compute_nodes ({NODE})")
        put = "INSERT INTO {} VALUES (?, 'blue', 2, 4096, ?, ?, ?, ?)"
        for values in (
            (f"{name}-runs", moment(0), None, None, 0),
            (f"{name}-ended", moment(1), moment(2), moment(2), 7),
            (f"{name}-failed", None, None, moment(2), 8),
        ):
            connection.exec_driver_sql(put.format("instances"), values)
        connection.exec_driver_sql(put.format("shadow_instances"), (f"{name}-kept", moment(0), None, moment(2), 9))
        connection.exec_driver_sql(put.format("shadow_instances"), (f"{name}-old", moment(0), moment(0), moment(0), 3))
        connection.exec_driver_sql("INSERT INTO compute_nodes VALUES (48, 1000, 4.0, 1.5, 0), (48, 1000, 1.0, 1.0, 5)")
        connection.exec_driver_sql("INSERT INTO compute_nodes VALUES (10, 100, 0.0, NULL, 0)")
    engine.dispose()
    return f"sqlite:///{path}"


def test_instances_also_archived_ones_and_hosts(tmp_path: Path) -> None:
    found = nova_database.read(cell(tmp_path), WINDOW, Options("mine"))
    assert found.trace.servers.rows() == [
        (0, None, 2.0, 4096, None, None, "blue"),
        (0, DAY, 2.0, 4096, None, None, "blue"),
        (0, DAY, 2.0, 4096, None, None, "blue"),
    ]
    assert found.trace.end_of_trace_seconds == 2 * DAY
    assert found.trace.dropped == (Dropped("it never started", 1, 3),)
    assert found.hosts == Hosts(2, 202, 1600)


def test_several_cells_are_given_by_a_file(tmp_path: Path) -> None:
    names = tmp_path / "cells"
    names.write_text(f"# cells\n{cell(tmp_path, 'one')}\n{cell(tmp_path, 'two')}\n")
    found = nova_database.read(str(names), WINDOW, Options("mine"))
    assert found.trace.servers.height == 6
    assert found.hosts == Hosts(4, 404, 3200)


def test_nothing_is_changed(tmp_path: Path) -> None:
    url = cell(tmp_path)
    path = tmp_path / "cell1.sqlite"
    before = path.read_bytes()
    nova_database.read(url, WINDOW, Options("mine"))
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["cell1.sqlite"]


def test_what_is_no_cell_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such database"):
        nova_database.read(f"sqlite:///{tmp_path}/gone", WINDOW, Options("mine"))
    assert not list(tmp_path.iterdir())
    other = tmp_path / "other.sqlite"
    sa.create_engine(f"sqlite:///{other}").connect().exec_driver_sql("CREATE TABLE cells (id int)").close()
    with pytest.raises(BadRequest, match="has no table instances"):
        nova_database.read(f"sqlite:///{other}", WINDOW, Options("mine"))
    other.write_bytes(b"no database at all" * 100)
    with pytest.raises(Unavailable, match=r"other\.sqlite"):
        nova_database.read(f"sqlite:///{other}", WINDOW, Options("mine"))
    (tmp_path / "none").write_text("# none yet\n")
    with pytest.raises(BadRequest, match="has no URL"):
        nova_database.read(str(tmp_path / "none"), WINDOW, Options("mine"))
    with pytest.raises(BadRequest, match="wanted: mysql"):
        nova_database.read("strange+thing://x/y/../", WINDOW, Options("mine"))


def test_a_password_is_not_shown() -> None:
    with pytest.raises(Unavailable) as refused:
        nova_database.read("mysql+pymysql://user:hush@127.0.0.1:9/nova", WINDOW, Options("mine"))
    assert "hush" not in refused.value.message


@pytest.mark.parametrize(("column", "value"), [("launched_at", "noon"), ("vcpus", "many"), ("uuid", 7)])
def test_a_value_that_is_none_of_novas_is_refused(tmp_path: Path, column: str, value: object) -> None:
    url = cell(tmp_path)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE instances RENAME TO typed")
        connection.exec_driver_sql(f"CREATE TABLE instances ({INSTANCE.replace(' text', '').replace(' int', '')})")
        connection.exec_driver_sql("INSERT INTO instances SELECT * FROM typed")
        connection.exec_driver_sql(f"UPDATE instances SET {column} = ?", (value,))
    engine.dispose()
    with pytest.raises(BadRequest, match=r"cell1\.sqlite has a value that is none of Nova's"):
        nova_database.read(url, WINDOW, Options("mine"))
