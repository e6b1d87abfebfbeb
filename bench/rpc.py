"""`make bench-rpc`: calls over RDMA against calls over RabbitMQ, through the same oslo.messaging, in the same run.

Two server processes, one on the broker alone and one with RDMA beside it; one client process. Rounds alternate, so that
whatever else the machine does meets both; the ratio within each round is one sample. `calls` follow each other in one
thread; `parallel` ones come from several; a `lone` one comes after a silence, when the server looks rarely. Idle: what
the server with RDMA uses of a core while nobody calls, beyond what the other one uses in the same seconds. All on this
machine, with the driver's name on each line: shm and tcp are no RDMA device.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

import oslo_messaging  # noqa: E402 (threading first)
import psutil  # noqa: E402

from bench.figures import Meter, percentile, spread  # noqa: E402
from bench.rpc_server import configuration, target  # noqa: E402
from pondstack.rpc import transport as rpc  # noqa: E402
from pondstack.testing.daemon import wait_until  # noqa: E402
from pondstack.testing.servers import RabbitMQServer  # noqa: E402

RATIO = 1.0
"""Of time over RDMA to time over RabbitMQ, at most: otherwise nobody has a reason to switch it on."""
IDLE_PERCENT = 2.0
"""Of a core, at most, that a server's looks for requests may cost while nobody calls."""
VALUE = {"host": "host1", "attached": [{"uuid": "0" * 36, "extents": [[0, 16]]}] * 8}
"""About 700 bytes: a report of a host with some guests."""


class Bus:
    """A server process and a client of it."""

    def __init__(self, url: str, driver: str, folder: str, options: list[str]) -> None:
        topic = f"bench-{driver or 'rabbit'}"
        words = [sys.executable, "-W", "ignore", "-m", "bench.rpc_server", url, driver, folder, topic, *options]
        self.server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout
        if self.server.stdout.readline() != "ready\n":
            raise RuntimeError("a server of the benchmark did not start; what it says is above")
        given = dict(item.split(":", 1) for item in options)
        self.transport = rpc.get_transport(configuration(url, driver, folder, given))
        self._client = oslo_messaging.get_rpc_client(self.transport, target(topic)).prepare(timeout=60)

    def call(self) -> float:
        """Return the microseconds of one call."""
        begun = time.perf_counter()
        self._client.call({}, "echo", value=VALUE)
        return (time.perf_counter() - begun) * 1e6

    def cpu_seconds(self) -> float:
        """Return what the server's process has used so far."""
        used = psutil.Process(self.server.pid).cpu_times()
        return float(used.user + used.system)

    def close(self) -> None:
        """End the server, and hang up."""
        self.server.communicate()
        self.transport.cleanup()


@dataclass
class Found:
    """Microseconds by kind, one list a round."""

    calls: list[list[float]] = field(default_factory=list)
    lone: list[list[float]] = field(default_factory=list)
    parallel: list[float] = field(default_factory=list)
    """Wall time per call, all threads together."""


@contextmanager
def buses(given: argparse.Namespace) -> Iterator[tuple[Bus, Bus]]:
    """Yield the bus over RDMA and the one over the broker."""
    oslo_messaging.set_transport_defaults("openstack")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ps-rpc-", dir="/tmp"))
        Path(folder).chmod(0o711)
        broker = RabbitMQServer(Path(folder))
        stack.callback(broker.stop)
        broker.start()
        url = broker.transport_url()
        made = []
        for driver, options in ((given.driver, given.option), ("", [])):
            made.append(Bus(url, driver, folder, options))
            stack.callback(made[-1].close)
        ours, theirs = made

        def over_rdma() -> bool:
            ours.call()
            return bool(ours.transport._driver.answered)

        if not wait_until(over_rdma, 30.0):
            raise RuntimeError(f"no call goes over {given.driver}; see the log above")
        yield ours, theirs


def turn(bus: Bus, found: Found, given: argparse.Namespace) -> None:
    """Measure one round of a bus."""
    found.calls.append([bus.call() for _ in range(given.calls)])
    with ThreadPoolExecutor(given.threads) as pool:
        begun = time.perf_counter()
        list(pool.map(lambda _: bus.call(), range(given.calls)))
        found.parallel.append((time.perf_counter() - begun) / given.calls * 1e6)
    lone = []
    for _ in range(given.lone):
        time.sleep(0.1)
        lone.append(bus.call())
    found.lone.append(lone)


def idle(ours: Bus, theirs: Bus, seconds: float) -> tuple[float, float]:
    """Return the percent of a core that either server uses while nobody calls."""
    before = [bus.cpu_seconds() for bus in (ours, theirs)]
    time.sleep(seconds)
    after = [bus.cpu_seconds() for bus in (ours, theirs)]
    used = [(end - begin) / seconds * 100 for begin, end in zip(before, after, strict=True)]
    return used[0], used[1]


def line(name: str, ours: Sequence[float], theirs: Sequence[float], goal: float | None) -> bool:
    """Print one kind, a value a round; whether it holds its target."""
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    held = goal is None or statistics.median(ratios) <= goal
    verdict = "no target" if goal is None else f"target <= {goal}: {'ok' if held else 'MISSED'}"
    print(
        f"{name:<26} us  ours {spread(ours, 0)}   RabbitMQ {spread(theirs, 0)}   ratio {spread(ratios, 2)}, {verdict}"
    )
    return held


def report(driver: str, ours: Found, theirs: Found, used: tuple[float, float], threads: int) -> int:
    """Print figures; 0 when all of them hold."""
    mine, other = ([statistics.median(round_) for round_ in found.calls] for found in (ours, theirs))
    good = [line(f"{driver} calls, median", mine, other, RATIO)]
    mine, other = ([percentile(round_, 99) for round_ in found.calls] for found in (ours, theirs))
    good.append(line(f"{driver} calls, p99", mine, other, RATIO))
    good.append(line(f"{driver} {threads} threads, per call", ours.parallel, theirs.parallel, RATIO))
    rates = [1e6 / statistics.median(found.parallel) for found in (ours, theirs)]
    print(f"{driver} {threads} threads, calls/s      ours {rates[0]:.0f}   RabbitMQ {rates[1]:.0f}")
    mine, other = ([statistics.median(round_) for round_ in found.lone] for found in (ours, theirs))
    line(f"{driver} lone call, median", mine, other, None)
    more = used[0] - used[1]
    good.append(more <= IDLE_PERCENT)
    print(
        f"{driver} idle server, % of a core: with RDMA {used[0]:.2f}   broker alone {used[1]:.2f}   more {more:.2f}, "
        f"target <= {IDLE_PERCENT}: {'ok' if good[-1] else 'MISSED'}"
    )
    return 0 if all(good) else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 when the targets hold."""
    parser = argparse.ArgumentParser(prog="make bench-rpc", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--driver", default="shm", help="entry point of pondstack.transports (DRIVER)")
    parser.add_argument("--option", action="append", default=[], help="name:value of that transport")
    parser.add_argument("--rounds", type=int, default=11, help="turns of either (ROUNDS)")
    parser.add_argument("--calls", type=int, default=200, help="in a turn")
    parser.add_argument("--lone", type=int, default=10, help="lone calls in a turn")
    parser.add_argument("--threads", type=int, default=8, help="of the parallel calls")
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="that nobody calls")
    given = parser.parse_args(arguments)
    ours, theirs = Found(), Found()
    with buses(given) as (rdma, rabbit), Meter("rounds", given.rounds) as meter:
        turn(rdma, Found(), given)
        turn(rabbit, Found(), given)
        for number in range(given.rounds):
            pairs = [(rdma, ours), (rabbit, theirs)]
            for bus, found in pairs if number % 2 else pairs[::-1]:
                turn(bus, found, given)
            meter.show(number + 1, "")
        used = idle(rdma, rabbit, given.idle_seconds)
    print(f"{given.rounds} rounds of {given.calls} calls; median (least - most) of rounds; all on this machine")
    return report(given.driver, ours, theirs, used, given.threads)


if __name__ == "__main__":
    sys.exit(main())
