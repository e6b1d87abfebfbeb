"""What `make bench-rpc` compares: a bus over RDMA and one over RabbitMQ, on this machine or in two emulated hosts."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench.rpc_client import Client, Turn
from pondstack_rack.servers import LOOPBACK, RabbitMQServer
from tests.hardware import code_disk
from tests.hardware.host import EmulatedHost
from tests.hardware.machine import OUTSIDE
from tests.hardware.qemu import Files
from tests.hardware.rdma_hosts import ADDRESSES, pair, set_up

REACH_SECONDS = 60.0
_SERVER = "bench.rpc_server"
_HOSTS_PYTHON = "/opt/pondstack/bin/python"
_CODE = {"PYTHONPATH": "/opt/code"}


class Bus:
    """A server process and a client of it."""

    def __init__(self, client: Any, end: Callable[[], object], pid: int = 0) -> None:
        self._client, self._end, self._pid = client, end, pid

    def turn(self, given: argparse.Namespace) -> Turn:
        """Measure one turn."""
        turn: Turn = self._client.turn(given.calls, given.threads, given.lone)
        return turn

    def cpu_seconds(self) -> float:
        """Return what the server's process has used so far; of one on this machine."""
        used = psutil.Process(self._pid).cpu_times()
        return float(used.user + used.system)

    def reach_rdma(self, driver: str) -> None:
        """Call until calls go over RDMA; raises RuntimeError."""
        if not self._client.reaches_rdma(REACH_SECONDS):
            raise RuntimeError(f"no call goes over {driver}; see the log above")

    def answered(self) -> int:
        """Return how many calls went over RDMA."""
        return int(self._client.answered())

    def close(self) -> None:
        """Hang up, and end the server."""
        self._client.close()
        self._end()


@contextmanager
def broker() -> Iterator[tuple[Path, str]]:
    """Run a RabbitMQ of this machine: its folder, and its URL here."""
    with tempfile.TemporaryDirectory(prefix="ps-rpc-", dir="/tmp") as folder, ExitStack() as stack:
        Path(folder).chmod(0o711)
        server = RabbitMQServer(Path(folder))
        stack.callback(server.stop)
        server.start()
        yield Path(folder), server.transport_url()


@contextmanager
def here(given: argparse.Namespace) -> Iterator[tuple[Bus, Bus]]:
    """Yield the bus over RDMA and the one over the broker, servers and clients on this machine."""
    with broker() as (folder, url), ExitStack() as stack:
        made = []
        for driver, options in ((given.driver, given.option), ("", [])):
            words = [url, driver, str(folder), _topic(driver), *options]
            server = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", _SERVER, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert server.stdout
            if server.stdout.readline() != "ready\n":
                raise RuntimeError("a server of the benchmark did not start; what it says is above")
            made.append(Bus(Client(url, driver, str(folder), _topic(driver), options), server.communicate, server.pid))
            stack.callback(made[-1].close)
        ours, theirs = made
        ours.reach_rdma(given.driver)
        yield ours, theirs


@contextmanager
def in_hosts(given: argparse.Namespace) -> Iterator[tuple[Bus, Bus]]:
    """Yield the same of two emulated hosts: servers in one, clients in the other, the broker on this machine."""
    files = Files.built()
    with broker() as (folder, url), ExitStack() as stack:
        serving, calling = _hosts(files, folder, stack)
        outside, made = url.replace(LOOPBACK, OUTSIDE), []
        for driver, host in ((given.driver, ADDRESSES[0]), ("", "")):
            options = [*given.option, *([f"host:{host}"] if host else [])]
            words = [outside, driver, "/run", _topic(driver), *options]
            server = serving.start([_HOSTS_PYTHON, "-W", "ignore", "-m", _SERVER, *words], env=_CODE)
            server.wait_for("ready")
            client = calling.remote(
                "bench.rpc_client:Client",
                url=outside,
                driver=driver,
                folder="/run",
                topic=_topic(driver),
                options=given.option if driver else [],
            )
            made.append(Bus(client, lambda: None))
        ours, theirs = made
        ours.reach_rdma(given.driver)
        yield ours, theirs


def _hosts(files: Files, folder: Path, stack: ExitStack) -> Sequence[EmulatedHost]:
    code = code_disk.build(files, folder)
    hosts = [EmulatedHost(machine, files, code) for machine in pair(folder)]
    for host in hosts:
        stack.callback(host.close, failed=False)
    with ThreadPoolExecutor(len(hosts)) as pool:
        list(pool.map(EmulatedHost.power_on, hosts))
    for host, address in zip(hosts, ADDRESSES, strict=True):
        set_up(host, address)
    return hosts


def _topic(driver: str) -> str:
    return f"bench-{driver or 'rabbit'}"
