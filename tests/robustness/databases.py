"""The databases under test behind one shape: how to reach them, how to kill a part of them, how to mend it."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pondstack_rack.servers import MariaDBServer, galera, postgresql_pair
from pondstack_rack.wait import wait_until

NAME = "pondstack"
Mend = Callable[[], None]


class Store(Protocol):
    """One database set-up. `casualty` names what kill() kills, for the table.

    `one_disk`: all of it is on one disk, which can be full. (A cluster's servers here share a disk that in production
    they do not: a Galera node that cannot write leaves its cluster, and three of them end it.)
    """

    casualty: str
    one_disk: bool
    hosts: list[str]

    def start(self) -> None:
        """Start the servers that do not run and wait until all serve."""

    def stop(self) -> None:
        """Stop all servers."""

    def url(self) -> str:
        """Return the SQLAlchemy URL of the ledger's database, made when it is missing."""

    def kill(self, rng: random.Random) -> Mend:
        """SIGKILL a server and let the others, if any, go on; returns what makes the set-up whole again."""


class SingleMariaDB:
    """One MariaDB server: while it is away nobody can write."""

    casualty = "kill -9 database, start it again"
    one_disk = True

    def __init__(self, folder: Path) -> None:
        self.server = MariaDBServer(folder, binlog=True)
        self.hosts: list[str] = []

    def start(self) -> None:
        """Start the server."""
        self.server.start()

    def stop(self) -> None:
        """Stop the server."""
        self.server.stop()

    def url(self) -> str:
        """Return the URL."""
        return self.server.database_url(NAME)

    def kill(self, _rng: random.Random) -> Mend:
        """Kill the server and start it at once: there is no other one."""
        self.server.kill()
        self.server.start()
        return lambda: None


class Galera:
    """Three nodes; the client's own list of nodes finds another one."""

    casualty = "kill -9 Galera node"
    one_disk = False

    def __init__(self, folder: Path) -> None:
        if lacking := galera.missing():
            raise RuntimeError(lacking)
        self._cluster = galera.GaleraCluster(folder, 3)
        self.hosts = self._cluster.hosts

    def start(self) -> None:
        """Start the cluster."""
        self._cluster.start()

    def stop(self) -> None:
        """Stop the cluster."""
        self._cluster.stop()

    def url(self) -> str:
        """Return the URL on the first node."""
        return self._cluster.database_url(NAME)

    def kill(self, rng: random.Random) -> Mend:
        """Kill one of the three nodes; mended, it has what it missed."""
        # Every second time the first of the list: that is where connections are made.
        number = 0 if rng.random() < 0.5 else rng.randrange(1, len(self._cluster.nodes))
        self._cluster.kill(number)
        return lambda: self._cluster.restart(number)


class Postgres:
    """A primary and a synchronous standby; the run is the arbiter that promotes."""

    casualty = "kill -9 PostgreSQL primary, promote the standby"
    one_disk = False

    def __init__(self, folder: Path) -> None:
        if lacking := postgresql_pair.missing():
            raise RuntimeError(lacking)
        self._pair = postgresql_pair.PostgresPair(folder)
        self.hosts = self._pair.hosts

    def start(self) -> None:
        """Start both servers."""
        self._pair.start()

    def stop(self) -> None:
        """Stop both servers."""
        self._pair.stop()

    def url(self) -> str:
        """Return the URL on the present primary."""
        return self._pair.database_url(NAME)

    def kill(self, _rng: random.Random) -> Mend:
        """Kill the primary and promote the standby; mended, there is a synchronous standby again."""
        self._pair.kill_primary()
        self._pair.promote()
        return self._mend

    def _mend(self) -> None:
        self._pair.rejoin()
        if not wait_until(self._pair.synchronous, postgresql_pair.CATCH_UP_SECONDS):
            raise RuntimeError("the new standby does not confirm commits")


STORES: dict[str, type[SingleMariaDB] | type[Galera] | type[Postgres]] = {
    "mariadb": SingleMariaDB,
    "galera": Galera,
    "postgresql": Postgres,
}
