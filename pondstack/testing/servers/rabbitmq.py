"""A single RabbitMQ broker."""

import os
import socket
import subprocess
from pathlib import Path

from pondstack.testing import daemon
from pondstack.testing.servers.base import LOOPBACK, USER, Server, free_port

RABBITMQ_SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
RABBITMQCTL = "/usr/lib/rabbitmq/bin/rabbitmqctl"


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
