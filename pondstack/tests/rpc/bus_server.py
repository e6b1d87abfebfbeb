"""A server of the contract tests of RPC; in a process of its own: `bus_server.py URL TRANSPORT FOLDER TOPIC NAME`."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

import oslo_messaging  # noqa: E402 (threading first)
from oslo_config import cfg  # noqa: E402

from pondstack.conf import rpc as rpc_conf  # noqa: E402
from pondstack.domain.errors import PondError, PoolShortage, StaleEpoch  # noqa: E402
from pondstack.rpc import targets  # noqa: E402
from pondstack.rpc import transport as rpc  # noqa: E402

expected = oslo_messaging.expected_exceptions(PondError)


def target(topic: str, server: str | None = None) -> Any:
    """Return where the servers listen."""
    return oslo_messaging.Target(exchange=targets.EXCHANGE, topic=topic, version="1.0", server=server)


def journal_of(folder: Path) -> Path:
    """Return where servers write down what they carried out."""
    return folder / "journal"


def bus_conf(url: str, transport: str, folder: str) -> cfg.ConfigOpts:
    """Return a configuration of a client or a server."""
    conf = cfg.ConfigOpts()
    rpc_conf.register_opts(conf)
    conf([], project="pondstack", default_config_files=[])
    oslo_messaging.TransportURL.parse(conf)  # registers transport_url
    conf.set_override("transport_url", url)
    for name, value in {"transport": transport, "shm_folder": folder, "retry_seconds": 0.2}.items():
        conf.set_override(name, value, group="rpc")
    if transport == "verbs":  # in a host under emulation, which stands still for seconds on a busy machine
        conf.set_override("access_timeout_seconds", 20.0, group="rpc")
    return conf


class Endpoint:
    """Writes down what it carries out, before it answers."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self, name: str, journal: Path) -> None:
        self._name = name
        self._journal = journal
        self._lock = threading.Lock()

    def do(self, context: dict[str, Any], operation_id: str, value: Any) -> dict[str, Any]:
        """Carry out one operation."""
        with self._lock, self._journal.open("a") as journal:
            journal.write(f"{operation_id}\n")
        return {"by": self._name, "value": value, "context": context}

    def ping(self, _context: Any) -> None:
        """Answer."""

    def slow(self, _context: Any, operation_id: str, seconds: float) -> str:
        """Carry out one that takes long."""
        time.sleep(seconds)
        with self._lock, self._journal.open("a") as journal:
            journal.write(f"{operation_id}\n")
        return "done"

    @expected
    def fail(self, _context: Any, kind: str) -> None:
        """Raise one of our errors, or a bug."""
        raise {"shortage": PoolShortage("3 slices asked for"), "epoch": StaleEpoch("epoch 1 < 2")}.get(
            kind, ValueError("a bug")
        )


class BusServer:
    """A running server."""

    def __init__(self, conf: cfg.ConfigOpts, topic: str, name: str, folder: Path) -> None:
        self.transport = rpc.get_oslo_transport(conf)
        self._server = oslo_messaging.get_rpc_server(
            self.transport, target(topic, name), [Endpoint(name, journal_of(folder))]
        )
        self._server.start()

    def stop(self) -> None:
        """Finish what is under way, and end."""
        self._server.stop()
        self._server.wait()
        self.transport.cleanup()


if __name__ == "__main__":
    url, transport, folder, topic, name = sys.argv[1:]
    server = BusServer(bus_conf(url, transport, folder), topic, name, Path(folder))
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()
