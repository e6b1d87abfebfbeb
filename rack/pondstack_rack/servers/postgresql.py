"""A single PostgreSQL server."""

import shutil
import signal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg2

from pondstack_rack import daemon
from pondstack_rack.servers.base import LOOPBACK, USER, Server
from pondstack_rack.servers.certificates import Certificate

POSTGRESQL_BIN = Path("/usr/lib/postgresql/15/bin")


class PostgreSQLServer(Server):
    """postgres of the Debian package, as the user postgres; fsync on."""

    name = "postgresql"

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory / "data"

    def _make_daemon(self) -> daemon.Daemon:
        argv = [
            *self._as_postgres(),
            str(POSTGRESQL_BIN / "postgres"),
            *("-D", str(self.data)),
            *("-h", LOOPBACK, "-p", str(self.port), "-k", str(self.directory / "run")),
            *("-c", "shared_buffers=32MB", "-c", "max_connections=300", "-c", "fsync=on"),
            *("-c", "dynamic_shared_memory_type=mmap", "-c", "logging_collector=off"),
            *self._tls_options(),
        ]
        # SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for the clients.
        return daemon.Daemon(self.name, argv, self.directory, ready=self._is_ready, stop_signal=signal.SIGINT)

    def _tls_options(self) -> list[str]:
        if self.tls is None:
            return []
        files = (f"ssl_cert_file={self._own_tls.certificate}", f"ssl_key_file={self._own_tls.key}")
        return ["-c", "ssl=on", *(word for file in files for word in ("-c", file)), "-c", f"hba_file={self._hba}"]

    @property
    def _own_tls(self) -> Certificate:
        """Copies that the user postgres may read."""
        return Certificate.of(self.directory / "run", "server")

    @property
    def _hba(self) -> Path:
        return self.directory / "run" / "pg_hba.conf"

    def _prepare_tls(self, tls: Certificate) -> None:
        own = self._own_tls
        shutil.copy(tls.certificate, own.certificate)
        shutil.copy(tls.key, own.key)
        # Without a line `host`, who connects without TLS is refused.
        self._hba.write_text(f"local all all scram-sha-256\nhostssl all all {LOOPBACK}/32 scram-sha-256\n")
        for path in (own.certificate, own.key, self._hba):
            shutil.chown(path, "postgres", "postgres")

    @staticmethod
    def _as_postgres() -> list[str]:
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]

    def _prepare(self) -> None:
        run = self.directory / "run"
        self._check_socket(run / f".s.PGSQL.{self.port}")
        self.directory.chmod(0o711)
        done = self.directory / "installed"
        if not done.exists():
            self._install(run)
            done.touch()
        if self.tls is not None:
            self._prepare_tls(self.tls)

    def _install(self, run: Path) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        password_file = run / "password"
        for path in (self.data, run):
            path.mkdir(mode=0o700, exist_ok=True)
            shutil.chown(path, "postgres", "postgres")
        password_file.write_text(self._password)
        shutil.chown(password_file, "postgres", "postgres")
        options = ["-U", USER, "-E", "UTF8", "--no-locale", "-N"]
        initdb: list[str | Path] = [POSTGRESQL_BIN / "initdb", "-D", self.data, *options]
        self._run([*self._as_postgres(), *initdb, "-A", "scram-sha-256", "--pwfile", password_file], cwd="/")
        password_file.unlink()

    def _connect(self, name: str = "postgres") -> Any:
        connection = psycopg2.connect(
            host=LOOPBACK,
            port=self.port,
            user=USER,
            password=self._password,
            dbname=name,
            connect_timeout=5,
            **self._client_tls(),
        )
        connection.autocommit = True
        return connection

    def _client_tls(self) -> dict[str, str]:
        return {} if self.tls is None else {"sslmode": "verify-full", "sslrootcert": str(self.tls.authority)}

    def _is_ready(self) -> bool:
        try:
            self._connect().close()
        except psycopg2.OperationalError:
            return False
        return True

    def execute(self, statement: str) -> list[Any]:
        """Run one statement as the administrator and return its rows."""
        connection = self._connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def database_url(self, name: str) -> str:
        """Return the SQLAlchemy URL of a database, made when it is missing."""
        if not self.execute(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
            self.execute(f'CREATE DATABASE "{name}"')
        tls = f"?{urlencode(self._client_tls(), safe='/')}" if self.tls else ""
        return f"postgresql+psycopg2://{USER}:{self._password}@{LOOPBACK}:{self.port}/{name}{tls}"

    def drop_database(self, name: str) -> None:
        """Remove a database with all its rows, and the connections to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
