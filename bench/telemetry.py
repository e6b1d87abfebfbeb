"""`make bench-telemetry`: what telemetry costs the controller, and whether an assign is slower while it comes in.

10,000 guests of 200 hosts, each with a zNUMA node, looked at as agents do by default: batches of a minute, their memory
every 5 minutes, counters of a machine with a PMU, access scans every half hour. A host's batch is what an agent sends,
in JSON; taking it in is decoding it, the rows and the labels, and what housekeeping does to the same rows later: the
sums of periods and the end of both. CPU time is that of this process, which on SQLite is the database, too.
The latency is that of one assign at a time, in turns of some seconds with batches coming at that pace, and without.
"""

import argparse
import json
import logging
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import delete, func, select

from bench.figures import percentile
from bench.ledger import OurLedger
from pondstack.db.connection.engine import Database
from pondstack.db.models import TelemetryRow
from pondstack.db.store.history import History
from pondstack.db.store.telemetry import LATE_SECONDS, Retention, Telemetry
from pondstack.domain.requests import AssignRequest
from pondstack.domain.telemetry import Metric
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.rpc.wire import Sample
from pondstack_rack.servers import MariaDBServer

WINDOW_SECONDS = 300
BATCHES = 5
"""In the window, of each host."""
SCAN_EVERY = 6
"""Windows between two access scans of a guest."""
PERIOD_SECONDS = 3600
AGE_SECONDS = float(PERIOD_SECONDS + 2 * LATE_SECONDS + 120)
"""Of all samples: their period is complete, and they are old enough to be forgotten."""
CPU_TARGET = 5.0
MEDIAN_TARGET, TAIL_TARGET = 1.10, 1.25
"""Ratios of an assign's median and 95th percentile with ingest to those without, each the median over the turns."""

COUNTERS = (
    Metric.INSTRUCTIONS_PER_CYCLE,
    Metric.CACHE_MISSES_PER_KILO,
    Metric.BACKEND_BOUND_PERCENT,
    Metric.MEMORY_BOUND_PERCENT,
)
NODES = (None, 0, 1)


@dataclass(frozen=True, slots=True)
class Load:
    """What is measured."""

    vms: int
    hosts: int


def batches(load: Load, *, age_seconds: float = 0.0) -> Iterator[tuple[str, str]]:
    """Yield (host, JSON of its samples) of one window, batch after batch."""
    guests = [str(uuid.UUID(int=number << 64 | 0x5EED)) for number in range(load.vms)]
    for batch in range(BATCHES):
        age = age_seconds + (BATCHES - batch) * WINDOW_SECONDS / BATCHES
        for host in range(load.hosts):
            mine = range(host, load.vms, load.hosts)
            samples = [one for number in mine for one in _samples(guests[number], number, batch, age)]
            yield f"host{host}", json.dumps([one.to_wire() for one in samples])


def _samples(guest: str, number: int, batch: int, age: float) -> Iterator[Sample]:
    for metric in COUNTERS:
        yield Sample(guest, metric, None, age, 60, 0.8, 1.1, 1.7)
    if batch != number % BATCHES:
        return
    for node in NODES:
        for metric in (Metric.MEMORY_MIB, Metric.UNTOUCHED_MIB, Metric.HUGE_MIB):
            yield Sample(guest, metric, node, age, 1, 1024.5, 1024.5, 1024.5)
    yield Sample(guest, Metric.COMMITTED_MIB, None, age, 1, 1024.5, 1024.5, 1024.5)
    if number // BATCHES % SCAN_EVERY == 0:
        for node in NODES:
            for metric in (Metric.HOT_MIB, Metric.COLD_MIB):
                yield Sample(guest, metric, node, age, 1, 512.0, 512.0, 512.0)
        for metric in (Metric.SCAN_SECONDS, Metric.SCAN_CPU_SECONDS):
            yield Sample(guest, metric, None, age, 1, 0.2, 0.2, 0.2)


class Ingest:
    """The controller's side: what it does with a batch, and with what is old."""

    def __init__(self, database: Database) -> None:
        retention = Retention(PERIOD_SECONDS + 2 * LATE_SECONDS, PERIOD_SECONDS, 90 * 86400)
        self._database = database
        self._telemetry = Telemetry(database, lambda: retention)
        self._history = History(database, lambda: 365 * 86400)

    def take(self, host: str, text: str) -> int:
        """Take a batch in; returns how many samples it had."""
        samples = [Sample.from_wire(item) for item in json.loads(text)]
        self._telemetry.write(host, samples)
        return len(samples)

    def tidy(self) -> None:
        """Sum up and forget."""
        self._telemetry.tidy()
        self._history.tidy()

    def counts(self) -> tuple[int, int]:
        """Return how many samples and how many periods are kept."""
        periods = TelemetryRow.period_seconds > 0
        query = select(periods, func.count()).group_by(periods)
        found = self._database.read(lambda session: {bool(row[0]): row[1] for row in session.execute(query)})
        return found.get(False, 0), found.get(True, 0)

    def clear(self) -> None:
        """Forget all samples and periods."""
        self._database.write(lambda session: session.execute(delete(TelemetryRow)))


def cpu_seconds(ingest: Ingest, load: Load) -> tuple[float, int]:
    """Return the seconds of a CPU that one window takes, and how many samples it has."""
    texts = list(batches(load, age_seconds=AGE_SECONDS))
    begun, samples = time.process_time(), 0
    for host, text in texts:
        samples += ingest.take(host, text)
    ingest.tidy()
    spent = time.process_time() - begun
    left, periods = ingest.counts()
    ingest.clear()
    if left or not periods:
        raise RuntimeError(f"housekeeping left {left} samples and made {periods} periods: the figure would be too low")
    return spent, samples


@contextmanager
def incoming(ingest: Ingest, load: Load) -> Iterator[None]:
    """Have batches come in at their pace until the end of the block."""
    texts = list(batches(Load(max(load.vms // 10, 1), max(load.hosts // 10, 1))))
    pause = WINDOW_SECONDS / (BATCHES * load.hosts)
    ending = threading.Event()

    def run() -> None:
        number = 0
        while not ending.wait(pause):
            ingest.take(*texts[number % len(texts)])
            number += 1

    thread = threading.Thread(target=run, name="ingest")
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def assign_seconds(ledger: OurLedger, seconds: float) -> list[float]:
    """Return how long each assign took, one after the other for some seconds; each is undone afterwards."""
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        request = AssignRequest(str(uuid.uuid4()), "host1", ledger.pools[0], DEFAULT_SLICE_MIB, guest_mib=4096)
        begun = time.perf_counter()
        effect = ledger.ledger.slices.assign(str(uuid.uuid4()), request)
        found.append(time.perf_counter() - begun)
        allocation = effect["allocation_uuid"]
        ledger.ledger.slices.acknowledge(str(uuid.uuid4()), allocation, "host1")
        ledger.ledger.slices.release(str(uuid.uuid4()), allocation, "host1")
        ledger.ledger.slices.sanitized(ledger.pools[0], [effect["extents"][0]["start"]])
    return found


Pair = tuple[list[float], list[float]]
"""The times of assigns of two turns beside each other, without ingest and with it."""


def latencies(ledger: OurLedger, ingest: Ingest, load: Load, turns: int, seconds: float) -> list[Pair]:
    """Return the assigns' times turn by turn; who comes first alternates."""
    assign_seconds(ledger, min(seconds, 1.0))
    found = []
    for turn in range(turns):
        if turn % 2:
            with incoming(ingest, load):
                during = assign_seconds(ledger, seconds)
            without = assign_seconds(ledger, seconds)
        else:
            without = assign_seconds(ledger, seconds)
            with incoming(ingest, load):
                during = assign_seconds(ledger, seconds)
        found.append((without, during))
    return found


def ratio(pairs: Sequence[Pair], percent: float) -> float:
    """Return the median over the pairs of turns: whatever else the machine does meets both turns of a pair."""
    return percentile([percentile(during, percent) / percentile(without, percent) for without, during in pairs], 50)


def measure(name: str, url: str, options: argparse.Namespace) -> bool:
    """Measure on one database and print a row; returns whether the targets hold."""
    load = Load(options.vms, options.hosts)
    ledger = OurLedger(url, 1)
    database = Database.from_url(url)
    ingest = Ingest(database)
    cpu_seconds(ingest, Load(max(load.vms // 20, 1), max(load.hosts // 20, 1)))  # warm-up
    spent, samples = cpu_seconds(ingest, load)
    share = 100 * spent / WINDOW_SECONDS
    pairs = latencies(ledger, ingest, load, options.turns, options.seconds)
    both = [[second for pair in pairs for second in pair[which]] for which in (0, 1)]
    ratios = {percent: ratio(pairs, percent) for percent in (50, 95)}
    times = "  |".join(
        "".join(f"{1000 * percentile(found, percent):>9.2f}" for found in both) + f"{ratios[percent]:>7.2f}"
        for percent in ratios
    )
    cost = f"{samples:>9,}{spent:>13.1f}{share:>6.2f} %{1e6 * spent / samples:>11.1f}"
    print(f"{name:<9}{cost} |{times}  |{sum(map(len, both)):>6,}", flush=True)
    database.dispose()
    return share <= CPU_TARGET and ratios[50] <= MEDIAN_TARGET and ratios[95] <= TAIL_TARGET


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when the targets hold on every database."""
    parser = argparse.ArgumentParser(prog="make bench-telemetry", description=__doc__.partition("\n")[0])
    parser.add_argument("--vms", type=int, default=10_000, help="guests (VMS)")
    parser.add_argument("--hosts", type=int, default=200, help="hosts that they are on (HOSTS)")
    parser.add_argument("--turns", type=int, default=24, help="turns with ingest, and as many without (TURNS)")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a turn (SECONDS)")
    parser.add_argument("--database", choices=("sqlite", "mariadb"), help="only on this one (DATABASE)")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    print(f"\n{__doc__.split(chr(10) * 2)[1]}\n")
    print(f"n = {options.turns} pairs of turns of {options.seconds} s; milliseconds; ratio: median over the pairs")
    print(
        "          samples  CPU s/5 min   share  us/sample | p50 alone     with  ratio | p95 alone     with  ratio | n"
    )
    held = [measure(name, url, options) for name, url in databases(options.database)]
    targets = f"share <= {CPU_TARGET:.0f} %, p50 ratio <= {MEDIAN_TARGET:.2f}, p95 ratio <= {TAIL_TARGET:.2f}"
    print(f"{'OK' if all(held) else 'FAILED'}: {options.vms:,} guests, targets {targets}")
    return 0 if all(held) else 1


def databases(only: str | None) -> Iterator[tuple[str, str]]:
    """Yield name and URL of each database, or of one."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as folder:
        if only != "mariadb":
            yield "SQLite", f"sqlite:///{folder}/ledger.db"
        if only != "sqlite":
            server = MariaDBServer(Path(folder))
            server.start()
            try:
                yield "MariaDB", server.database_url("pondstack")
            finally:
                server.stop()


if __name__ == "__main__":
    sys.exit(main())
