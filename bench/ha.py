"""`make bench-ha`: what the mirror costs, and the mirrored ledger beside Placement on the same database.

The ledger's mirror is its database's: a Galera commit is certified by three nodes, a PostgreSQL commit is confirmed by
the standby, before the client hears of it. Cost: the same cycle of four operations (assign, acknowledge, release,
sanitised) on a single server and on the mirrored one, in alternating rounds, so that whatever else the machine does
meets both. Throughput: that cycle against Placement's PUT and DELETE of the same VM's allocation, both on the mirrored
database, in alternating rounds. All servers are on this machine: a network adds its round trip to each mirrored commit.
"""

import argparse
import logging
import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from oslo_service import backend

from bench.figures import spread
from bench.ledger import ItsPlacement, OurLedger, compare
from pondstack_rack.servers import GaleraCluster, MariaDBServer, PostgresPair, PostgreSQLServer

OPERATIONS = 4
"""Journaled transactions in a cycle."""

COST = 3.0
"""A mirrored operation takes at most so many times a single server's: it makes about six round trips to its server and
one commit, and the mirror makes the commit two to three times as long; more would mean that something else waits."""

THROUGHPUT = 1.0
"""A VM's bookkeeping costs no more than its claim in Placement: then the ledger is not what limits a rack's boots."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """A database with and without its mirror."""

    name: str
    single: Callable[[Path], MariaDBServer | PostgreSQLServer]
    mirrored: Callable[[Path], GaleraCluster | PostgresPair]


MIRRORS = {
    # No node dies here: one that a busy machine keeps silent for a second is not to be taken for dead.
    "galera": Mirror("Galera of 3 / MariaDB", MariaDBServer, partial(GaleraCluster, options={})),
    "postgresql": Mirror("PostgreSQL with synchronous standby / without", PostgreSQLServer, PostgresPair),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when every median ratio holds its target."""
    parser = argparse.ArgumentParser(prog="make bench-ha", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="pairs of rounds (ROUNDS)")
    parser.add_argument("--cycles", type=int, default=60, help="cycles in a round (CYCLES)")
    parser.add_argument("--threads", type=int, default=8, help="threads of the throughput's second row (THREADS)")
    parser.add_argument("--database", choices=[*MIRRORS, "all"], default="all", help="DATABASE")
    options = parser.parse_args(arguments)
    chosen = list(MIRRORS) if options.database == "all" else [options.database]
    # A process each: Placement takes one database for the life of a process.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as processes:
        measured = [processes.submit(_measure, name, options).result() for name in chosen]
    print(f"\nn = {options.rounds} pairs of rounds of {options.cycles} cycles each; median (least - most)")
    print("\n".join(line for lines, _ in measured for line in lines))
    missed = [text for _, texts in measured for text in texts]
    print(f"FAILED: {'; '.join(missed)}" if missed else f"OK: cost <= {COST:.1f}, throughput >= {THROUGHPUT:.1f}")
    return 1 if missed else 0


def _measure(database: str, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    logging.disable(logging.WARNING)
    backend.init_backend(backend.BackendType.THREADING)
    mirror = MIRRORS[database]
    print(f"starting servers: {mirror.name}", flush=True)
    with ExitStack() as stack:
        single = stack.enter_context(_started(mirror.single))
        mirrored = stack.enter_context(_started(mirror.mirrored))
        without = OurLedger(single.database_url("pondstack"), options.threads)
        ours = OurLedger(mirrored.database_url("pondstack"), options.threads)
        theirs = ItsPlacement(mirrored.database_url("placement"), options.threads)
        print("measuring the cost of one operation", flush=True)
        lines, missed = _cost(mirror.name, without, ours, options)
        for threads in (1, options.threads):
            print(f"measuring the throughput with {threads} thread{'s' if threads > 1 else ''}", flush=True)
            more, worse = _throughput(mirror.name, ours, theirs, threads, options)
            lines += more
            missed += worse
    return lines, missed


def _cost(name: str, without: OurLedger, ours: OurLedger, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    mine, its = compare(ours.cycle, without.cycle, 1, options.cycles, options.rounds)
    mirrored, single = ([1000.0 / OPERATIONS / rate for rate in rates] for rates in (mine, its))
    ratios = [one / other for one, other in zip(mirrored, single, strict=True)]
    lines = [
        f"\n{name}: one operation",
        f"  with the mirror      {spread(mirrored, 2)} ms",
        f"  without              {spread(single, 2)} ms",
        f"  ratio                {spread(ratios, 2)}",
    ]
    median = statistics.median(ratios)
    return lines, [] if median <= COST else [f"{name}: cost {median:.2f}, target <= {COST:.1f}"]


def _throughput(
    name: str, ours: OurLedger, theirs: ItsPlacement, threads: int, options: argparse.Namespace
) -> tuple[list[str], list[str]]:
    mine, its = compare(ours.cycle, theirs.cycle, threads, options.cycles, options.rounds)
    ratios = [one / other for one, other in zip(mine, its, strict=True)]
    lines = [
        f"  {threads} thread{'s' if threads > 1 else ''}, mirrored: ledger {spread(mine, 0)} cycles/s, "
        f"Placement {spread(its, 0)} cycles/s, ratio {spread(ratios, 2)}"
    ]
    median = statistics.median(ratios)
    short = f"{name}: throughput {median:.2f} of Placement's with {threads} threads, target >= {THROUGHPUT:.1f}"
    return lines, [] if median >= THROUGHPUT else [short]


@contextmanager
def _started(kind: Callable[[Path], Any]) -> Iterator[Any]:
    """Start a server in a folder with a short path (for its socket), gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        server = kind(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(main())
