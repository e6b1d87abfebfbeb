"""A single RabbitMQ broker, and what a member of a cluster needs besides."""

import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pondstack_rack import daemon
from pondstack_rack.servers.base import LOOPBACK, USER, Server, free_port
from pondstack_rack.servers.certificates import Certificate

RABBITMQ_SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
RABBITMQCTL = "/usr/lib/rabbitmq/bin/rabbitmqctl"
AWAIT_SECONDS = 10
"""How long one look at the broker's boot waits for its end."""


class Epmd(daemon.Daemon):
    """The Erlang port mapper of one broker, or of all nodes of a cluster."""

    def __init__(self, directory: Path, port: int) -> None:
        self.port = port
        argv = ["/usr/bin/epmd", "-address", LOOPBACK, "-port", str(port)]
        super().__init__("epmd", argv, directory, ready=self._answers)

    def _answers(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self.port), timeout=2).close()
        except OSError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Membership:
    """What a node shares with the other nodes of its cluster."""

    epmd: Epmd
    cookie: str
    password: str


class RabbitMQServer(Server):
    """rabbitmq-server with a node name of its own, no plugin; epmd and cookie are its own too, or its cluster's."""

    name = "rabbitmq"

    def __init__(
        self,
        directory: Path,
        port: int = 0,
        epmd_port: int = 0,
        dist_port: int = 0,
        *,
        membership: Membership | None = None,
        tls: Certificate | None = None,
    ) -> None:
        directory = Path(directory).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.dist_port = dist_port or int(self._remembered("dist_port", lambda: str(free_port())))
        self._membership = membership
        self._epmd = membership.epmd if membership else self._own_epmd(epmd_port)
        self.peers: tuple[str, ...] = ()
        super().__init__(directory, port, tls=tls)
        if membership:
            self._password = membership.password

    def _own_epmd(self, port: int) -> Epmd:
        return Epmd(self.directory, port or int(self._remembered("epmd_port", lambda: str(free_port()))))

    @property
    def epmd_port(self) -> int:
        """Port of the port mapper."""
        return self._epmd.port

    @property
    def node(self) -> str:
        """Erlang's name of the broker."""
        return f"pond{self.port}@localhost"

    def _env(self) -> dict[str, str]:
        home = self.directory
        return {
            **os.environ,
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(self.epmd_port),
            "RABBITMQ_NODENAME": self.node,
            # A listener without TLS, whatever the file says.
            **({} if self.tls else {"RABBITMQ_NODE_IP_ADDRESS": LOOPBACK, "RABBITMQ_NODE_PORT": str(self.port)}),
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
            f"{self._listener_lines()}"
            f"default_user = {USER}\n"
            f"default_pass = {self._password}\n"
            "raft.wal_max_size_bytes = 33554432\n"
            "disk_free_limit.absolute = 50MB\n"
            "log.console.level = warning\n" + self._peer_lines()
        )
        if self._membership:
            cookie = self.directory / ".erlang.cookie"
            cookie.unlink(missing_ok=True)
            cookie.touch(mode=0o400)
            cookie.write_text(self._membership.cookie)
        self._epmd.start()

    def _listener_lines(self) -> str:
        if self.tls is None:
            return f"listeners.tcp.1 = {LOOPBACK}:{self.port}\n"
        return (
            "listeners.tcp = none\n"
            f"listeners.ssl.1 = {LOOPBACK}:{self.port}\n"
            f"ssl_options.cacertfile = {self.tls.authority}\n"
            f"ssl_options.certfile = {self.tls.certificate}\n"
            f"ssl_options.keyfile = {self.tls.key}\n"
            "ssl_options.versions.1 = tlsv1.3\n"
            "ssl_options.versions.2 = tlsv1.2\n"
            "ssl_options.verify = verify_none\n"  # clients have passwords, no certificates
            "ssl_options.fail_if_no_peer_cert = false\n"
        )

    def _peer_lines(self) -> str:
        if not self.peers:
            return ""
        lines = ["cluster_formation.peer_discovery_backend = classic_config"]
        lines += [
            f"cluster_formation.classic_config.nodes.{number} = {peer}" for number, peer in enumerate(self.peers, 1)
        ]
        return "\n".join(lines) + "\n"

    def _is_ready(self) -> bool:
        return self._greets() and self._runs()

    def _runs(self) -> bool:
        """Whether the app runs: until then rabbitmqctl makes no virtual host. It begins after the listener opened."""
        try:
            self.rabbitmqctl("await_startup", "--timeout", str(AWAIT_SECONDS))
        except daemon.DaemonFailed:
            return False
        return True

    def _greets(self) -> bool:
        """Speak AMQP 0-9-1 and expect Connection.Start: the listener opens near the end of the broker's boot."""
        try:
            with self._connect() as probe:
                probe.sendall(b"AMQP\x00\x00\x09\x01")
                return probe.recv(1) == b"\x01"
        except OSError:
            return False

    def _connect(self) -> socket.socket:
        plain = socket.create_connection((LOOPBACK, self.port), timeout=5)
        if self.tls is None:
            return plain
        context = self.tls.context()
        context.check_hostname = False  # this is a look whether it serves; its names are for its clients
        try:
            return context.wrap_socket(plain)
        except OSError:
            plain.close()
            raise

    def stop(self) -> None:
        """Shut the broker down in order, then its own epmd."""
        super().stop()
        if not self._membership:
            self._epmd.stop()

    def kill(self) -> None:
        """SIGKILL the broker and its own epmd; durable queues come back with start()."""
        super().kill()
        if not self._membership:
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
        self.make_vhost(vhost)
        tls = "" if self.tls is None else f"?ssl=true&ssl_ca_file={self.tls.authority}"
        return f"rabbit://{self.address()}/{'' if vhost == '/' else vhost}{tls}"

    def address(self) -> str:
        """Return the broker's part of such a URL."""
        return f"{USER}:{self._password}@{LOOPBACK}:{self.port}"

    def make_vhost(self, vhost: str) -> None:
        """Make a virtual host when it is missing."""
        if vhost != "/" and vhost not in self.rabbitmqctl("list_vhosts", "name").split():
            self.rabbitmqctl("add_vhost", vhost)
            self.rabbitmqctl("set_permissions", "-p", vhost, USER, ".*", ".*", ".*")
