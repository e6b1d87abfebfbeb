"""A MariaDB Galera cluster of our own: every node takes writes, a commit is certified by all of them.

A node that was killed comes back with the missing transactions only (IST), as Debian's galera_recovery does it; one
that missed too much gets a copy by rsync (SST). It needs galera-4, rsync, lsof, socat, mariadb-client-core, and the
scripts wsrep_sst_*: in PATH where the package mariadb-server is installed, else in the venv by tools/setup.sh.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pymysql

from pondstack_rack import daemon
from pondstack_rack.servers.base import LOOPBACK, free_port
from pondstack_rack.servers.mariadb import MariaDBServer
from pondstack_rack.wait import wait_until

PROVIDER = Path("/usr/lib/galera/libgalera_smm.so")
SCRIPTS = Path(sys.prefix) / "share/pondstack/wsrep"
SST = "wsrep_sst_rsync"
PROGRAMS = ("rsync", "lsof", "socat", "my_print_defaults", SST)
JOIN_SECONDS = 60.0
# A dead node is noticed after about two seconds instead of six; Galera refuses inactive_timeout < suspect_timeout.
QUICK = {
    "evs.keepalive_period": "PT0.3S",
    "evs.inactive_check_period": "PT0.25S",
    "evs.suspect_timeout": "PT1S",
    "evs.inactive_timeout": "PT3S",
    "evs.install_timeout": "PT3S",
}


def missing() -> str:
    """Return what keeps this machine from running a cluster, "" when nothing does."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if not PROVIDER.exists():
        lacking.insert(0, str(PROVIDER))
    return f"a Galera cluster needs {', '.join(lacking)}: run tools/setup.sh" if lacking else ""


def _path() -> str:
    return os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class GaleraNode(MariaDBServer):
    """One node; made and started by its cluster. Not root's: its rsync would give up the rights to its own files."""

    account = "nobody"

    def __init__(
        self,
        directory: Path,
        number: int,
        peers: list[int],
        group_port: int,
        password: str,
        options: Mapping[str, str],
    ) -> None:
        self.number = number
        self._options = options
        self._group_port = group_port
        self._peers = peers
        self._bootstrap = False
        directory.mkdir(parents=True, exist_ok=True)
        secret = directory / "password"
        secret.touch(mode=0o600)
        secret.write_text(password)
        self.name = f"galera{number}"
        super().__init__(directory)

    def _make_daemon(self) -> daemon.Daemon:
        env = {**os.environ, "PATH": _path()}
        return daemon.Daemon(self.name, self._argv(), self.directory, env=env, ready=self._is_ready)

    def _argv(self) -> list[str]:
        ports = {name: self._remembered(name, lambda: str(free_port())) for name in ("ist_port", "sst_port")}
        provider = {
            "gmcast.listen_addr": f"tcp://{LOOPBACK}:{self._group_port}",
            "ist.recv_addr": f"{LOOPBACK}:{ports['ist_port']}",
            "gcache.size": "32M",
            **self._options,
        }
        return [
            *(word for word in super()._argv() if word != "--skip-log-bin"),
            "--binlog-format=ROW",
            "--default-storage-engine=InnoDB",
            "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=ON",
            f"--wsrep-provider={PROVIDER}",
            "--wsrep-cluster-name=pondstack",
            "--wsrep-cluster-address=gcomm://" + ",".join(f"{LOOPBACK}:{port}" for port in self._peers),
            f"--wsrep-node-name={self.name}",
            f"--wsrep-node-address={LOOPBACK}",
            f"--wsrep-node-incoming-address={LOOPBACK}:{self.port}",
            "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address={LOOPBACK}:{ports['sst_port']}",
            "--wsrep-provider-options=" + ";".join(f"{key}={value}" for key, value in provider.items()),
        ]

    def start(self, bootstrap: bool = False) -> Self:
        """Start and wait until the node is synced; `bootstrap` begins a new cluster with it."""
        if not self.running:
            self._bootstrap = bootstrap
            self.daemon.argv = self._argv() + (["--wsrep-new-cluster"] if bootstrap else self._position())
        return super().start()

    def _install(self) -> None:
        if self._bootstrap:
            super()._install()
        elif not self.data.exists():  # what joins gets all of it from the others
            self.data.mkdir(mode=0o700)
            shutil.chown(self.data, self.account)

    def _position(self) -> list[str]:
        """Return the option that says what the node has after a crash, so that it needs the rest only."""
        state = self.data / "grastate.dat"
        if not state.exists() or not re.search(r"^seqno:\s*-1$", state.read_text(), re.MULTILINE):
            return []
        done = subprocess.run(
            [*self._argv(), "--wsrep-recover", "--log-error=/dev/stderr"], capture_output=True, text=True, check=False
        )
        found = re.search(r"Recovered position:\s*(\S+)", done.stdout + done.stderr)
        return [f"--wsrep-start-position={found[1]}"] if found else []

    def _is_ready(self) -> bool:
        return self.status().get("wsrep_local_state_comment") == "Synced" and super()._is_ready()

    def status(self) -> dict[str, str]:
        """Return the node's wsrep_* status; empty while it does not answer."""
        try:
            return dict(self.execute("SHOW STATUS LIKE 'wsrep\\_%'"))
        except pymysql.err.OperationalError:
            return {}

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let the node answer reads and apply nothing of what the others commit."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute("FLUSH TABLES WITH READ LOCK")
            try:
                yield
            finally:
                cursor.execute("UNLOCK TABLES")

    @property
    def primary(self) -> bool:
        """Whether the node belongs to the part of the cluster that takes writes."""
        status = self.status()
        return status.get("wsrep_cluster_status") == "Primary" and status.get("wsrep_ready") == "ON"


class GaleraCluster:
    """Nodes 0, 1, 2, ... with a directory of their own each. Stopped by pid only.

    `options` of the provider: how soon a silent node counts as dead; Galera's own defaults are {}.
    """

    def __init__(self, directory: Path, size: int = 3, options: Mapping[str, str] = QUICK) -> None:
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        group = [self._port(number) for number in range(size)]
        password = self._remembered("password", lambda: os.urandom(12).hex())
        self.nodes = [
            GaleraNode(self.directory / f"n{number}", number, group, port, password, options)
            for number, port in enumerate(group)
        ]

    def _port(self, number: int) -> int:
        return int(self._remembered(f"group_port{number}", lambda: str(free_port())))

    def _remembered(self, name: str, make: Any) -> str:
        path = self.directory / name
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(make())
        return path.read_text()

    @property
    def hosts(self) -> list[str]:
        """host:port of each node, as [database] hosts wants it."""
        return [f"{LOOPBACK}:{node.port}" for node in self.nodes]

    def start(self) -> Self:
        """Start the nodes that do not run and wait until all are synced; idempotent.

        One after the other: two that join at once make the group form itself anew several times.
        """
        if not any(node.running for node in self.nodes):
            self._first().start(bootstrap=True)
        for node in self.nodes:
            self.thaw(node.number)
            node.start()
        self.wait_size(len(self.nodes))
        return self

    def _first(self) -> GaleraNode:
        """Return the node that was the last one of an orderly stop; the first one when there is no cluster yet."""
        states = [(node, node.data / "grastate.dat") for node in self.nodes]
        safe = [node for node, path in states if path.exists() and "safe_to_bootstrap: 1" in path.read_text()]
        if not safe and any(path.exists() for _, path in states):
            raise daemon.DaemonFailed(f"galera: all nodes crashed; see {self.directory}/n*/data/grastate.dat")
        return safe[0] if safe else self.nodes[0]

    def stop(self) -> None:
        """Shut all nodes down in order, the first one last; idempotent."""
        for node in reversed(self.nodes):
            self.thaw(node.number)
            node.stop()

    def kill(self, number: int) -> None:
        """SIGKILL a node."""
        self.nodes[number].kill()

    def restart(self, number: int) -> None:
        """Start a killed or stopped node again and wait until it has what it missed."""
        self.nodes[number].start()
        self.wait_size(sum(node.running for node in self.nodes))

    def freeze(self, number: int) -> None:
        """SIGSTOP a node: its connections stay open and nothing answers."""
        self._signal(number, signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        """SIGCONT a node; the others have thrown it out meanwhile and it joins again."""
        self._signal(number, signal.SIGCONT)

    def _signal(self, number: int, what: int) -> None:
        process = self.nodes[number].daemon.process
        if process is not None:
            daemon.signal_process(process, what)

    def wait_size(self, size: int, timeout_seconds: float = JOIN_SECONDS) -> None:
        """Wait until every running node sees `size` members and is synced; raises DaemonFailed."""

        def joined(node: GaleraNode) -> bool:
            status = node.status()
            return status.get("wsrep_cluster_size") == str(size) and status.get("wsrep_local_state_comment") == "Synced"

        running = [node for node in self.nodes if node.running]
        if not wait_until(lambda: all(joined(node) for node in running), timeout_seconds):
            seen = {node.name: node.status().get("wsrep_cluster_size") for node in running}
            raise daemon.DaemonFailed(f"galera: no cluster of {size} within {timeout_seconds:.0f} s: {seen}")

    def execute(self, statement: str, number: int = 0) -> list[Any]:
        """Run one statement as the administrator on one node and return its rows."""
        return self.nodes[number].execute(statement)

    def database_url(self, name: str, number: int = 0) -> str:
        """Return the SQLAlchemy URL of a database on one node, made when it is missing."""
        return self.nodes[number].database_url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database with all its rows from all nodes."""
        self.nodes[0].drop_database(name)
