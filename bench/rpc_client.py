"""A client of `make bench-rpc`, of one server: on this machine, or in a process of an emulated host."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

import oslo_messaging  # noqa: E402 (threading first)

from bench.rpc_server import configuration, parsed, target  # noqa: E402
from pondstack.rpc import transport as rpc  # noqa: E402
from pondstack_rack.wait import wait_until  # noqa: E402

VALUE = {"host": "host1", "attached": [{"uuid": "0" * 36, "extents": [[0, 16]]}] * 8}
"""About 700 bytes: a report of a host with some guests."""


@dataclass(frozen=True)
class Turn:
    """Microseconds of one turn. `per_call`: wall time per parallel call, all threads together."""

    calls: list[float]
    per_call: float
    lone: list[float]


class Client:
    """Calls the server of one topic. `others`: more options of [rpc]."""

    def __init__(
        self, url: str, driver: str, folder: str, topic: str, options: Sequence[str] = (), **others: Any
    ) -> None:
        oslo_messaging.set_transport_defaults("openstack")
        self._transport = rpc.get_oslo_transport(configuration(url, driver, folder, parsed(options), **others))
        self._client = oslo_messaging.get_rpc_client(self._transport, target(topic)).prepare(timeout=60)

    def call(self) -> float:
        """Return the microseconds of one call."""
        begun = time.perf_counter()
        self._client.call({}, "echo", value=VALUE)
        return (time.perf_counter() - begun) * 1e6

    def answered(self) -> int:
        """Return how many calls were answered over RDMA so far."""
        return int(self._transport._driver.answered)

    def reaches_rdma(self, within: float) -> bool:
        """Call until a call goes over RDMA; whether one did in so many seconds."""
        before = self.answered()
        return wait_until(lambda: bool(self.call()) and self.answered() > before, within)

    def turn(self, calls: int, threads: int, lone: int) -> Turn:
        """Call one after the other, then from several threads, then after silences."""
        single = [self.call() for _ in range(calls)]
        with ThreadPoolExecutor(threads) as pool:
            begun = time.perf_counter()
            list(pool.map(lambda _: self.call(), range(calls)))
            per_call = (time.perf_counter() - begun) / calls * 1e6
        rare = []
        for _ in range(lone):
            time.sleep(0.1)
            rare.append(self.call())
        return Turn(single, per_call, rare)

    def close(self) -> None:
        """Hang up."""
        self._transport.cleanup()
