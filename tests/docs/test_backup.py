"""The commands of doc/source/admin/backup.md: a ledger that comes back old leads again once its epoch is raised."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from pondstack.controller.pool.devices import DeviceRegistry, DeviceSpec
from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.store import SQL
from pondstack.db.store.leadership import SqlLeadership
from pondstack.devices.emulated import create_device
from pondstack.ledger.ledger import Ledger

PAGE = Path(__file__).resolve().parents[2] / "doc" / "source" / "admin" / "backup.md"


def commands(section: str, store: str) -> str:
    """Return the shell block that a section has for a database."""
    (part,) = re.findall(rf"^## {section}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (block,) = re.findall(rf"^ *{store}:\n\n *```sh\n(.*?)^ *```$", part, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(block)


def statement() -> str:
    """Return the statement that raises the epoch."""
    (found,) = re.findall(r"^ *```sql\n *(.*?);\n", PAGE.read_text(), re.MULTILINE)
    return found


def run(script: str, directory: Path, environment: dict[str, str]) -> None:
    """Run a block; its `python3` is the tests' own."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=directory,
        env={**os.environ, "PATH": path, "D": str(directory), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def lead(database: Database) -> int:
    """Take the next epoch, whoever has the lease; return it."""
    leadership = SqlLeadership(database)
    database.write(lambda session: session.execute(text("UPDATE leadership SET expires_at = 0")))
    assert leadership.take(leadership.read().epoch, "the test", 30.0)
    return leadership.read().epoch


def pools(database: Database, device: Path) -> tuple[str, ...]:
    """Return the pools that a leader of the next epoch registers, as its promotion does."""
    return DeviceRegistry(
        Ledger(database, lead(database), store=SQL), [DeviceSpec("pool0", "emulated", str(device))]
    ).register()


def lost_and_restored(
    url: str, store: str, directory: Path, environment: dict[str, str], name: str = "pondstack"
) -> None:
    """Back a ledger up, let two epochs pass, restore it: it leads only after its epoch was raised.

    `name`: of the database, which the page calls pondstack.
    """
    device = directory / "pool0"
    create_device(device, 2)
    database = Database.from_url(url)
    migration.sync(database)
    known = pools(database, device)
    run(commands("Back up", store).replace(" pondstack\n", f" {name}\n"), directory, environment)
    assert pools(database, device) == pools(database, device) == known != ()
    database.dispose()
    run(commands("Restore", store).replace("=pondstack ", f"={name} "), directory, environment)
    database = Database.from_url(url)
    assert pools(database, device) == ()
    database.write(lambda session: session.execute(text(statement())))
    assert pools(database, device) == known
    database.dispose()


def test_sqlite(tmp_path: Path) -> None:
    lost_and_restored(f"sqlite:///{tmp_path}/pondstack.db", "SQLite", tmp_path, {})


@pytest.mark.functional
def test_postgresql(postgresql_url: str, short_directory: Callable[[str], Path]) -> None:
    url = make_url(postgresql_url)
    environment = {
        "PGHOST": str(url.host),
        "PGPORT": str(url.port),
        "PGUSER": str(url.username),
        "PGPASSWORD": str(url.password),
    }
    directory = short_directory("backup")
    lost_and_restored(postgresql_url, "PostgreSQL", directory, environment, name=str(url.database))
