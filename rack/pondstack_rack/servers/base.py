"""What all servers share: a directory, a port, a password of their own, and one daemon."""

import os
import secrets
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pondstack_rack import daemon
from pondstack_rack.servers.certificates import Certificate

LOOPBACK = "127.0.0.1"
UNIX_SOCKET_MAX_BYTES = 107
USER = "pondstack"
_PORTS = range(10_000, 20_000)  # Linux takes 32768 and up for outgoing connections; the racks are at 21000 and up
_given: list[socket.socket] = []


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on and that was given to nobody else.

    A server may listen long after it has its port, as the one that copies a Galera node's data does. So this process
    keeps the port bound until it ends: no process's next call gets it, and a server with SO_REUSEADDR can listen.
    Not one of those that the kernel gives to outgoing connections: between its end and its next start a server would
    lose it to any client.
    """
    while True:
        port = secrets.choice(_PORTS)
        bound = socket.socket()
        try:
            bound.bind((LOOPBACK, port))
        except OSError:
            bound.close()
            continue
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after the bind, which is to find it unused
        _given.append(bound)
        return port


class Server:
    """One server; a subclass says how it is made, started and known to be ready.

    With a certificate it takes connections with TLS only, and what it tells clients to connect by says so.
    """

    name = "server"

    def __init__(self, directory: Path, port: int = 0, *, tls: Certificate | None = None) -> None:
        self.tls = tls
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
        self.launch()
        self.daemon.start()
        return self

    def launch(self) -> None:
        """Start without waiting; idempotent."""
        if not self.running:
            self._prepare()
            self.daemon.launch()

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
