"""Each test of the ledger's SQL runs on SQLite, MariaDB and PostgreSQL; on MySQL if PONDSTACK_TEST_MYSQL names one."""

from collections.abc import Iterator

import pytest

from pondstack.db import migration
from pondstack.db.engine import Database
from pondstack.db.ledger import Ledger
from pondstack.db.sql_reader import SqlReader
from pondstack.testing import lead
from pondstack.testing.fixtures import NETWORK_DATABASES

POOL = "11111111-1111-4111-8111-111111111111"


@pytest.fixture(params=["sqlite", *NETWORK_DATABASES])
def url(request, tmp_path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def empty(url) -> Iterator[Database]:
    database = Database.from_url(url, retry_seconds=10)
    yield database
    database.dispose()


@pytest.fixture
def database(empty) -> Database:
    migration.sync(empty)
    return empty


@pytest.fixture
def ledger(database) -> Ledger:
    """A ledger with one pool of four slices and two hosts that reach it."""
    made = Ledger(database, lead(database, "test"))
    made.register_pool(
        uuid=POOL, name="pool0", serial="S1", driver="fake", address={"path": "/x"}, slice_mib=1024, slices_total=4
    )
    for host in ("h1", "h2"):
        made.heartbeat(report(host))
    return made


@pytest.fixture
def reader(database) -> SqlReader:
    return SqlReader(database, agent_down_seconds=20)


def report(host, sequence=1, **values):
    return {
        "host": host,
        "sequence": sequence,
        "epoch": 1,
        "version": "0.1.0",
        "pools": [POOL],
        "attached": [],
        "released": [],
        **values,
    }
