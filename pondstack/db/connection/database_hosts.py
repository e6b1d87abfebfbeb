"""The servers of one database: which one a connection goes to, and for how long it waits for an answer.

Connections stay with one server for as long as it serves: writers on different Galera nodes only make each other fail.
A server that lost a connection or cannot write is left for the next one. At each connection a PostgreSQL server in
recovery and a Galera node that is not ready are passed over.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_utils import netutils
from sqlalchemy import Engine, event

from pondstack.db.connection import retry, timeouts

LOG = logging.getLogger(__name__)

DEFAULT_PORT = {"mysql": 3306, "postgresql": 5432}
CANNOT_CONNECT = {"mysql": (2003,), "postgresql": ()}
"""What the drivers put before the text of an error of connecting."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{netutils.escape_ipv6(self.host)}:{self.port}"


def parse(addresses: Sequence[str], dialect: str) -> list[Server]:
    """Return servers from "host", "host:port" or "[IPv6]:port"; raises ValueError."""
    if addresses and dialect not in DEFAULT_PORT:
        raise ValueError(f"{dialect} has no servers to choose from; leave hosts empty")
    found = []
    for text in addresses:
        try:
            host, port = netutils.parse_host_port(text.strip(), DEFAULT_PORT[dialect])
        except ValueError:
            host, port = "", 0
        if not host or not netutils.is_valid_port(port):
            raise ValueError(f"{text!r} is not host, host:port or [IPv6]:port")
        found.append(Server(host, int(port)))
    return found


class Servers:
    """Chooses among servers for the connections of one engine; thread-safe. Without any, the URL's is the only one."""

    def __init__(self, engine: Engine, servers: Sequence[Server], limits: timeouts.Limits) -> None:
        self._servers = list(servers)
        self._arguments = timeouts.arguments(engine.dialect.name, limits)
        self._name = engine.dialect.name
        self._lock = threading.Lock()
        self._chosen = 0
        event.listen(engine, "do_connect", self._connect)
        # First of all listeners: oslo.db's asks whether the connection is lost.
        event.listen(engine, "handle_error", self._judge, insert=True)
        event.listen(engine, "invalidate", self._leave)

    @property
    def chosen(self) -> Server | None:
        """The server that the next connection goes to first; None when there is no choice."""
        return self._servers[self._chosen] if self._servers else None

    def _connect(self, dialect: Any, record: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        named.update(self._arguments)
        if not self._servers:
            return None  # SQLAlchemy goes on with these arguments
        refusals = []
        first = self._chosen
        for offset in range(len(self._servers)):
            number = (first + offset) % len(self._servers)
            server = self._servers[number]
            try:
                connection = dialect.connect(*arguments, **{**named, "host": server.host, "port": server.port})
            except dialect.loaded_dbapi.Error as error:
                refusals.append(f"{server}: {_text(error)}")
                continue
            reason = self._unfit(dialect, connection)
            if not reason:
                self._settle(first, number)
                record.info["server"] = number
                return connection
            connection.close()
            refusals.append(f"{server}: {reason}")
        text = f"no server of [database] hosts serves: {'; '.join(refusals)}"
        raise dialect.loaded_dbapi.OperationalError(*CANNOT_CONNECT[self._name], text)

    def _unfit(self, dialect: Any, connection: Any) -> str:
        """Return why a server that answers cannot take writes, "" when it can."""
        try:
            with connection.cursor() as cursor:
                reason = _UNFIT[self._name](cursor)
            connection.rollback()
        except dialect.loaded_dbapi.Error as error:
            return _text(error)
        return reason

    def _settle(self, before: int, number: int) -> None:
        with self._lock:
            if self._chosen == before and number != before:
                self._chosen = number
                LOG.info("Connecting to database server %s now", self._servers[number])

    @staticmethod
    def _judge(context: Any) -> None:
        """Have a connection thrown away, and the pool's others with it, when its server cannot go on."""
        if retry.remedy(context.original_exception) in (retry.Remedy.ELSEWHERE, retry.Remedy.UNKNOWN):
            context.is_disconnect = True

    def _leave(self, _connection: Any, record: Any, error: BaseException | None) -> None:
        """Turn to the next server, unless another thread did so already."""
        with self._lock:
            if error is None or len(self._servers) < 2 or record.info.get("server") != self._chosen:
                return
            left = self._servers[self._chosen]
            self._chosen = (self._chosen + 1) % len(self._servers)
        # The pool's own exception, after a ping without an answer, has no text.
        reason = _text(error) if error.args else "it did not answer a ping"
        LOG.warning("Database server %s fails (%s); trying %s", left, reason, self.chosen)


def _unfit_mysql(cursor: Any) -> str:
    # SHOW is what a node outside the primary component answers too.
    cursor.execute("SHOW GLOBAL STATUS LIKE 'wsrep_ready'")
    ready = dict(cursor.fetchall()).get("wsrep_ready")
    cursor.execute("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'wsrep_on')")
    variables = dict(cursor.fetchall())
    if variables.get("wsrep_on") == "ON" and ready != "ON":
        return "the Galera node is not ready"
    return "read only" if variables.get("read_only") == "ON" else ""


def _unfit_postgresql(cursor: Any) -> str:
    cursor.execute("SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'")
    standby, read_only = cursor.fetchone()
    if standby:
        return "in recovery (a standby)"
    return "read only" if read_only else ""


_UNFIT: dict[str, Callable[[Any], str]] = {"mysql": _unfit_mysql, "postgresql": _unfit_postgresql}


def _text(error: BaseException) -> str:
    return " ".join(str(error).split())
