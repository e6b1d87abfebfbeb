"""A server of `make bench-rpc`, a process of its own: `python -m bench.rpc_server URL DRIVER FOLDER TOPIC [OPTION]`."""

import sys
from collections.abc import Sequence
from typing import Any

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

import oslo_messaging  # noqa: E402 (threading first)
from oslo_config import cfg  # noqa: E402

from pondstack.conf import rpc as rpc_conf  # noqa: E402
from pondstack.rpc import targets  # noqa: E402
from pondstack.rpc import transport as rpc  # noqa: E402


def target(topic: str, server: str | None = None) -> Any:
    """Return where a server listens."""
    return oslo_messaging.Target(exchange=targets.EXCHANGE, topic=topic, version="1.0", server=server)


def parsed(options: Sequence[str]) -> dict[str, str]:
    """Return name:value words as a transport's options."""
    return dict(item.split(":", 1) for item in options)


def configuration(
    url: str, driver: str, folder: str, options: dict[str, str] | None = None, **others: Any
) -> cfg.ConfigOpts:
    """Return the configuration of a client or a server; `driver` "": the broker alone. `others`: more of [rpc]."""
    conf = cfg.ConfigOpts()
    rpc_conf.register_opts(conf)
    conf([], project="pondstack", default_config_files=[])
    oslo_messaging.TransportURL.parse(conf)  # registers transport_url
    conf.set_override("transport_url", url)
    values = {"transport": driver, "shm_folder": folder, "transport_options": options or {}, **others}
    for name, value in values.items():
        conf.set_override(name, value, group="rpc")
    return conf


class Endpoint:
    """Does nothing, so that what is measured is the way."""

    target = oslo_messaging.Target(version="1.0")

    def echo(self, _context: Any, value: Any) -> Any:
        """Return the value."""
        return value


def main() -> None:
    """Serve until the standard input ends."""
    url, driver, folder, topic, *options = sys.argv[1:]
    conf = configuration(url, driver, folder, parsed(options))
    transport = rpc.get_oslo_transport(conf)
    server = oslo_messaging.get_rpc_server(transport, target(topic, "bench"), [Endpoint()])
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()
    server.wait()
    transport.cleanup()


if __name__ == "__main__":
    main()
