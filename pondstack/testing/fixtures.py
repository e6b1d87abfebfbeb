"""pytest fixtures with real servers; a plugin that the root conftest.py loads.

Servers start at first use, once a session. `mariadb_url` and `postgresql_url` give each test a fresh, empty database.
`mysql_url` does so on a server that is there already: Debian has none.
`galera` and `postgresql_pair` come whole to each test, whatever the one before broke; a test makes its own database.
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from pondstack.testing.servers import (
    GaleraCluster,
    MariaDBServer,
    PostgresPair,
    PostgreSQLServer,
    RabbitMQServer,
    Server,
)
from pondstack.testing.servers import galera as galera_cluster
from pondstack.testing.servers import postgresql_pair as pair

MYSQL = os.environ.get("PONDSTACK_TEST_MYSQL", "")
"""The URL of a MySQL server, without a database, as a user that may make some."""

NETWORK_DATABASES = ("mariadb", "postgresql", *(("mysql",) if MYSQL else ()))
"""Each has a fixture of that name and `_url`."""

_numbers = itertools.count()


@pytest.fixture(scope="session")
def short_directory() -> Iterator[Callable[[str], Path]]:
    """Make directories with paths short enough for unix sockets, reachable by other users; removed at the end."""
    made: list[Path] = []

    def make(name: str) -> Path:
        path = Path(tempfile.mkdtemp(prefix=f"ps-{name}-", dir="/tmp"))
        path.chmod(0o711)
        made.append(path)
        return path

    yield make
    for path in made:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def rabbitmq(short_directory: Callable[[str], Path]) -> Iterator[RabbitMQServer]:
    """A RabbitMQ broker of this session."""
    server = RabbitMQServer(short_directory("mq"))
    with _started(server):
        yield server


@pytest.fixture(scope="session")
def mariadb(short_directory: Callable[[str], Path]) -> Iterator[MariaDBServer]:
    """A MariaDB server of this session."""
    server = MariaDBServer(short_directory("db"))
    with _started(server):
        yield server


@pytest.fixture(scope="session")
def postgresql(short_directory: Callable[[str], Path]) -> Iterator[PostgreSQLServer]:
    """A PostgreSQL server of this session."""
    server = PostgreSQLServer(short_directory("pg"))
    with _started(server):
        yield server


@pytest.fixture(scope="session")
def galera_session(short_directory: Callable[[str], Path]) -> Iterator[GaleraCluster]:
    """A Galera cluster of three nodes of this session; use `galera`."""
    if reason := galera_cluster.missing():
        pytest.skip(reason)
    cluster = GaleraCluster(short_directory("gc"))
    with _started(cluster):
        yield cluster


@pytest.fixture
def galera(galera_session: GaleraCluster) -> GaleraCluster:
    """A Galera cluster whose nodes are all there."""
    return galera_session.start()


@pytest.fixture(scope="session")
def postgresql_pair_session(short_directory: Callable[[str], Path]) -> Iterator[PostgresPair]:
    """A PostgreSQL primary with a synchronous standby of this session; use `postgresql_pair`."""
    if reason := pair.missing():
        pytest.skip(reason)
    servers = PostgresPair(short_directory("pp"))
    with _started(servers):
        yield servers


@pytest.fixture
def postgresql_pair(postgresql_pair_session: PostgresPair) -> PostgresPair:
    """A PostgreSQL primary whose standby is there and confirms commits."""
    return postgresql_pair_session.start()


@pytest.fixture
def mariadb_url(mariadb: MariaDBServer) -> Iterator[str]:
    """The URL of a fresh MariaDB database, dropped after the test."""
    with _database(mariadb) as url:
        yield url


@pytest.fixture
def postgresql_url(postgresql: PostgreSQLServer) -> Iterator[str]:
    """The URL of a fresh PostgreSQL database, dropped after the test."""
    with _database(postgresql) as url:
        yield url


@pytest.fixture
def mysql_url() -> Iterator[str]:
    """The URL of a fresh MySQL database, dropped after the test."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    engine = create_engine(MYSQL, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        yield make_url(MYSQL).set(database=name).render_as_string(hide_password=False)
        connection.execute(text(f"DROP DATABASE {name}"))
    engine.dispose()


@contextmanager
def _started(server: Server | GaleraCluster | PostgresPair) -> Iterator[None]:
    try:
        server.start()
        yield
    finally:
        server.stop()


@contextmanager
def _database(server: MariaDBServer | PostgreSQLServer) -> Iterator[str]:
    server.start()  # a test may have left it stopped
    name = f"test_{next(_numbers)}"
    yield server.database_url(name)
    server.start()
    server.drop_database(name)
