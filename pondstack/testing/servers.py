"""Real MariaDB, RabbitMQ and PostgreSQL servers of our own, from Debian's packages, in one directory, on loopback.

They read no file of /etc and touch no server that the machine runs already. Run as root. PostgreSQL refuses root: it
runs as the user postgres, which must be able to reach the directory.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import psycopg2
import pymysql

from pondstack.testing import daemon

LOOPBACK = "127.0.0.1"
UNIX_SOCKET_MAX_BYTES = 107
USER = "pondstack"
POSTGRESQL_BIN = Path("/usr/lib/postgresql/15/bin")
RABBITMQ_SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
RABBITMQCTL = "/usr/lib/rabbitmq/bin/rabbitmqctl"


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


class Server:
    """What the three share: a directory, a port, a password of its own, and one daemon."""

    name = "server"

    def __init__(self, directory: Path, port: int = 0) -> None:
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = port or int(self._remembered("port", lambda: str(free_port())))
        self._password = self._remembered("password", lambda: secrets.token_hex(12))
        self.daemon = self._make_daemon()

    def _make_daemon(self) -> daemon.Daemon:
        raise NotImplementedError

    def _prepare(self) -> None:
        """Make the files that a first start needs; quick when they are there."""
        raise NotImplementedError

    def _is_ready(self) -> bool:
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """Whether the server's process lives."""
        return self.daemon.running

    @property
    def log_file(self) -> Path:
        """The log of the server."""
        return self.daemon.log_file

    def start(self) -> Self:
        """Start and wait until clients are served; idempotent."""
        if not self.running:
            self._prepare()
        self.daemon.start()
        return self

    def stop(self) -> None:
        """Shut down in order and wait for the end; idempotent."""
        self.daemon.stop()

    def kill(self) -> None:
        """SIGKILL the server as a crash would; start() recovers from its files."""
        self.daemon.kill()

    def restart(self) -> None:
        """Stop in order, then start on the same port with the same data."""
        self.stop()
        self.start()

    def _remembered(self, name: str, make: Any) -> str:
        path = self.directory / name
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(make())
        return path.read_text()

    def _run(self, argv: Sequence[str | Path], text: str = "", **kwargs: Any) -> None:
        """Run a set-up command with `text` as its input and its output in the server's log."""
        words = [str(word) for word in argv]
        with self.log_file.open("ab") as log:
            done = subprocess.run(words, input=text.encode(), stdout=log, stderr=log, check=False, **kwargs)
        if done.returncode:
            raise daemon.DaemonFailed(f"{self.name}: {words[0]} failed ({done.returncode}); log: {self.log_file}")

    def _check_socket(self, path: Path) -> None:
        if len(os.fsencode(path)) > UNIX_SOCKET_MAX_BYTES:
            raise daemon.DaemonFailed(
                f"{self.name}: {path} is longer than a unix socket may be "
                f"({UNIX_SOCKET_MAX_BYTES} bytes): take a shorter directory"
            )


class MariaDBServer(Server):
    """mariadbd; commits are durable (innodb_flush_log_at_trx_commit = 1), buffers are small."""

    name = "mariadb"

    @property
    def _socket(self) -> Path:
        return self.directory / "sock"

    def _make_daemon(self) -> daemon.Daemon:
        argv = [
            "/usr/sbin/mariadbd",
            "--no-defaults",
            "--user=root",
            f"--datadir={self.directory}/data",
            f"--socket={self._socket}",
            f"--pid-file={self.directory}/mariadbd.pid",
            f"--tmpdir={self.directory}/tmp",
            "--skip-networking=0",
            f"--bind-address={LOOPBACK}",
            f"--port={self.port}",
            "--skip-name-resolve",
            "--skip-log-bin",
            "--character-set-server=utf8mb3",
            "--max-connections=1000",
            "--innodb-buffer-pool-size=128M",
            "--innodb-log-file-size=64M",
            "--innodb-flush-log-at-trx-commit=1",
            "--key-buffer-size=1M",
            "--aria-pagecache-buffer-size=8M",
            "--performance-schema=OFF",
        ]
        return daemon.Daemon(self.name, argv, self.directory, ready=self._is_ready)

    def _prepare(self) -> None:
        self._check_socket(self._socket)
        (self.directory / "tmp").mkdir(exist_ok=True)
        done = self.directory / "installed"
        if done.exists():
            return
        data = self.directory / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(mode=0o700)
        # What mariadb-install-db does, without the programs of the client package and the help tables.
        sql = "create database mysql;\nuse mysql;\nSET @auth_root_socket='root';\n"
        sql += "".join(path.read_text() for path in self._system_tables())
        bootstrap = ["/usr/sbin/mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", "--bootstrap"]
        self._run([*bootstrap, "--skip-log-bin", "--innodb-log-file-size=64M"], text=sql)
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
        return f"mysql+pymysql://{USER}:{self._password}@{LOOPBACK}:{self.port}/{name}?charset=utf8"

    def drop_database(self, name: str) -> None:
        """Remove a database with all its rows."""
        self.execute(f"DROP DATABASE IF EXISTS `{name}`")


class PostgreSQLServer(Server):
    """postgres of the Debian package, as the user postgres; fsync on."""

    name = "postgresql"

    def _make_daemon(self) -> daemon.Daemon:
        argv = [
            *self._as_postgres(),
            str(POSTGRESQL_BIN / "postgres"),
            *("-D", str(self.directory / "data")),
            *("-h", LOOPBACK, "-p", str(self.port), "-k", str(self.directory / "run")),
            *("-c", "shared_buffers=32MB", "-c", "max_connections=300", "-c", "fsync=on"),
            *("-c", "dynamic_shared_memory_type=mmap", "-c", "logging_collector=off"),
        ]
        # SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for the clients.
        return daemon.Daemon(self.name, argv, self.directory, ready=self._is_ready, stop_signal=signal.SIGINT)

    @staticmethod
    def _as_postgres() -> list[str]:
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]

    def _prepare(self) -> None:
        run = self.directory / "run"
        self._check_socket(run / f".s.PGSQL.{self.port}")
        self.directory.chmod(0o711)
        done = self.directory / "installed"
        if done.exists():
            return
        data = self.directory / "data"
        shutil.rmtree(data, ignore_errors=True)
        password_file = run / "password"
        for path in (data, run):
            path.mkdir(mode=0o700, exist_ok=True)
            shutil.chown(path, "postgres", "postgres")
        password_file.write_text(self._password)
        shutil.chown(password_file, "postgres", "postgres")
        options = ["-U", USER, "-E", "UTF8", "--no-locale", "-N"]
        initdb: list[str | Path] = [POSTGRESQL_BIN / "initdb", "-D", data, *options]
        self._run([*self._as_postgres(), *initdb, "-A", "scram-sha-256", "--pwfile", password_file], cwd="/")
        password_file.unlink()
        done.touch()

    def _connect(self, name: str = "postgres") -> Any:
        connection = psycopg2.connect(
            host=LOOPBACK, port=self.port, user=USER, password=self._password, dbname=name, connect_timeout=5
        )
        connection.autocommit = True
        return connection

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
        return f"postgresql+psycopg2://{USER}:{self._password}@{LOOPBACK}:{self.port}/{name}"

    def drop_database(self, name: str) -> None:
        """Remove a database with all its rows, and the connections to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


class RabbitMQServer(Server):
    """rabbitmq-server with an epmd, a cookie and a node name of its own; no plugin."""

    name = "rabbitmq"

    def __init__(self, directory: Path, port: int = 0, epmd_port: int = 0, dist_port: int = 0) -> None:
        directory = Path(directory).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.epmd_port = epmd_port or int(self._remembered("epmd_port", lambda: str(free_port())))
        self.dist_port = dist_port or int(self._remembered("dist_port", lambda: str(free_port())))
        super().__init__(directory, port)
        self._epmd = daemon.Daemon(
            "epmd",
            ["/usr/bin/epmd", "-address", LOOPBACK, "-port", str(self.epmd_port)],
            self.directory,
            env=self._env(),
            ready=self._epmd_is_ready,
        )

    def _env(self) -> dict[str, str]:
        home = self.directory
        return {
            **os.environ,
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(self.epmd_port),
            "RABBITMQ_NODENAME": f"pond{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": LOOPBACK,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_CONF_ENV_FILE": str(home / "none.conf"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "none.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(home / "beam.pid"),
            # One scheduler that does not spin: the broker idles without taking a core.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_CTL_ERL_ARGS": "+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _make_daemon(self) -> daemon.Daemon:
        return daemon.Daemon(self.name, [RABBITMQ_SERVER], self.directory, env=self._env(), ready=self._is_ready)

    def _prepare(self) -> None:
        (self.directory / "enabled_plugins").write_text("[].\n")
        (self.directory / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = {LOOPBACK}:{self.port}\n"
            f"default_user = {USER}\n"
            f"default_pass = {self._password}\n"
            "raft.wal_max_size_bytes = 33554432\n"
            "disk_free_limit.absolute = 50MB\n"
            "log.console.level = warning\n"
        )
        self._epmd.start()

    def _epmd_is_ready(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self.epmd_port), timeout=2).close()
        except OSError:
            return False
        return True

    def _is_ready(self) -> bool:
        """Speak AMQP 0-9-1 and expect Connection.Start: the listener opens at the end of the broker's boot."""
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=5) as probe:
                probe.sendall(b"AMQP\x00\x00\x09\x01")
                return probe.recv(1) == b"\x01"
        except OSError:
            return False

    def stop(self) -> None:
        """Shut the broker down in order, then its epmd."""
        super().stop()
        self._epmd.stop()

    def kill(self) -> None:
        """SIGKILL broker and epmd; durable queues come back with start()."""
        super().kill()
        self._epmd.kill()

    def rabbitmqctl(self, *words: str) -> str:
        """Run rabbitmqctl against this broker and return its output."""
        done = subprocess.run(
            [RABBITMQCTL, "-q", *words],
            env=self._env(),
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
        if done.returncode:
            raise daemon.DaemonFailed(
                f"rabbitmqctl {' '.join(words)}: {done.stdout}{done.stderr}; log: {self.log_file}"
            )
        return done.stdout

    def transport_url(self, vhost: str = "/") -> str:
        """Return the oslo.messaging URL of a virtual host, made when it is missing."""
        if vhost != "/" and vhost not in self.rabbitmqctl("list_vhosts", "name").split():
            self.rabbitmqctl("add_vhost", vhost)
            self.rabbitmqctl("set_permissions", "-p", vhost, USER, ".*", ".*", ".*")
        return f"rabbit://{USER}:{self._password}@{LOOPBACK}:{self.port}/{'' if vhost == '/' else vhost}"
