"""A single MariaDB server."""

import shutil
from pathlib import Path
from typing import Any

import pymysql

from pondstack_rack import daemon
from pondstack_rack.servers.base import LOOPBACK, USER, Server
from pondstack_rack.servers.certificates import Certificate

MARIADBD = "/usr/sbin/mariadbd"


class MariaDBServer(Server):
    """mariadbd; commits are durable (innodb_flush_log_at_trx_commit = 1), buffers are small.

    With `binlog` each commit is in a binary log first, as a server has it that can be restored to a point in time.
    """

    name = "mariadb"
    account = "root"

    def __init__(self, directory: Path, port: int = 0, *, binlog: bool = False, tls: Certificate | None = None) -> None:
        self._binlog = binlog
        super().__init__(directory, port, tls=tls)

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory / "data"

    @property
    def _socket(self) -> Path:
        return self.directory / "sock"

    def _make_daemon(self) -> daemon.Daemon:
        return daemon.Daemon(self.name, self._argv(), self.directory, ready=self._is_ready)

    @property
    def _tmp(self) -> Path:
        return self.directory / "tmp"

    def _program(self) -> list[str]:
        # With a tmpdir of its own always: a starting server removes all temporary tables (#sql*) that it finds in its.
        own = (f"--user={self.account}", f"--datadir={self.data}", f"--tmpdir={self._tmp}")
        return [MARIADBD, "--no-defaults", *own]

    def _argv(self) -> list[str]:
        return [
            *self._program(),
            f"--socket={self._socket}",
            f"--pid-file={self.directory}/mariadbd.pid",
            "--skip-networking=0",
            f"--bind-address={LOOPBACK}",
            f"--port={self.port}",
            "--skip-name-resolve",
            *(("--log-bin=binlog", "--sync-binlog=1") if self._binlog else ("--skip-log-bin",)),
            "--character-set-server=utf8mb3",
            "--max-connections=1000",
            "--innodb-buffer-pool-size=128M",
            "--innodb-log-file-size=64M",
            "--innodb-flush-log-at-trx-commit=1",
            "--key-buffer-size=1M",
            "--aria-pagecache-buffer-size=8M",
            "--performance-schema=OFF",
            *self._tls_options(),
        ]

    def _tls_options(self) -> list[str]:
        """Return what refuses passwords that come over TCP in clear; its socket is a way within the machine."""
        if self.tls is None:
            return []
        own = (f"--ssl-cert={self.tls.certificate}", f"--ssl-key={self.tls.key}")
        return [*own, "--tls-version=TLSv1.2,TLSv1.3", "--require-secure-transport=ON"]

    def _prepare(self) -> None:
        self._check_socket(self._socket)
        for path in (self.directory, self._tmp):
            path.mkdir(exist_ok=True)
            shutil.chown(path, self.account)
        self._install()

    def _install(self) -> None:
        """Make the system tables, once."""
        done = self.directory / "installed"
        if done.exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        shutil.chown(self.data, self.account)
        # What mariadb-install-db does, without the programs of the client package and the help tables.
        sql = "create database mysql;\nuse mysql;\nSET @auth_root_socket='root';\n"
        sql += "".join(path.read_text() for path in self._system_tables())
        self._run([*self._program(), "--bootstrap", "--skip-log-bin", "--innodb-log-file-size=64M"], text=sql)
        done.touch()

    @staticmethod
    def _system_tables() -> list[Path]:
        names = ("system_tables", "performance_tables", "system_tables_data")
        found = [next(Path("/usr/share").glob(f"m[ya]*/m*_{name}.sql"), None) for name in names]
        if None in found:
            raise daemon.DaemonFailed("mariadb: no *_system_tables.sql in /usr/share: install mariadb-server-core")
        return [path for path in found if path]

    def _connect(self) -> Any:
        return pymysql.connect(unix_socket=str(self._socket), user="root", connect_timeout=5, autocommit=True)

    def _is_ready(self) -> bool:
        try:
            with self._connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"CREATE USER IF NOT EXISTS '{USER}'@'{LOOPBACK}' IDENTIFIED BY '{self._password}'")
                cursor.execute(f"GRANT ALL ON *.* TO '{USER}'@'{LOOPBACK}'")
        except pymysql.err.OperationalError:
            return False
        return True

    def execute(self, statement: str) -> list[Any]:
        """Run one statement as the administrator and return its rows."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def database_url(self, name: str) -> str:
        """Return the SQLAlchemy URL of a database, made when it is missing."""
        self.execute(f"CREATE DATABASE IF NOT EXISTS `{name}`")
        tls = "" if self.tls is None else f"&ssl_ca={self.tls.authority}"
        return f"mysql+pymysql://{USER}:{self._password}@{LOOPBACK}:{self.port}/{name}?charset=utf8{tls}"

    def drop_database(self, name: str) -> None:
        """Remove a database with all its rows."""
        self.execute(f"DROP DATABASE IF EXISTS `{name}`")
