"""`make robustness`: controllers killed, paused and cut off under load; what they acknowledged is checked afterwards.

One run for each database. The last lines are the table of each and a verdict; exits 0 only when every target holds.
"""

import argparse
import logging
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from bench.figures import Meter  # noqa: E402 (threading first)
from tests.robustness import disk, network, report  # noqa: E402
from tests.robustness.brokers import BROKERS  # noqa: E402
from tests.robustness.databases import STORES  # noqa: E402
from tests.robustness.plan import Counts  # noqa: E402
from tests.robustness.run import Options, run  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when every target holds on every database."""
    parser = argparse.ArgumentParser(prog="make robustness", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="how often the leader is killed with -9 (KILLS)")
    parser.add_argument("--pauses", type=int, default=50, help="how often it is paused past its lease (PAUSES)")
    parser.add_argument("--others", type=int, default=-1, help="how often each other fault happens (OTHERS)")
    parser.add_argument("--cuts", type=int, help="how often the leader's network is cut: as the others (CUTS)")
    parser.add_argument("--disks", type=int, help="how often the database's disk is full: as the others (DISKS)")
    parser.add_argument("--seed", type=int, default=1, help="what the plan and all choices follow from (SEED)")
    parser.add_argument("--database", choices=[*STORES, "all"], default="mariadb", help="DATABASE")
    parser.add_argument("--brokers", type=int, choices=[*BROKERS], default=1, help="nodes of RabbitMQ (BROKERS)")
    parser.add_argument("--rpc", default="", help="transport of calls beside the broker, such as shm (RPC)")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder of the reports (REPORTS)")
    options = parser.parse_args(arguments)
    # Told to end, the run still stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Interrupted once, it ends after the present fault and judges what there is.
    early = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: early.set())
    names = list(STORES) if options.database == "all" else [options.database]
    counts = Counts(options.kills, options.pauses, options.others)
    if lacking := network.missing():
        print(f"no network is cut: {lacking}", flush=True)
        options.cuts = 0
    if lacking := disk.missing():
        print(f"no disk is filled: {lacking}", flush=True)
        options.disks = 0
    counts = replace(counts, cuts=counts.rare if options.cuts is None else options.cuts)
    endings = [_one(_options(options, counts, name), options.reports, early) for name in names]
    print("\n" + "\n\n".join(lines for _, lines in endings))
    return 0 if all(good for good, _ in endings) else 1


def _options(options: argparse.Namespace, counts: Counts, database: str) -> Options:
    disks = counts.rare if options.disks is None else options.disks
    counts = replace(counts, disks=disks if STORES[database].one_disk else 0)
    return Options(options.seed, counts, database, options.brokers, rpc=options.rpc)


def _one(options: Options, reports: Path, early: threading.Event) -> tuple[bool, str]:
    folder = (reports / f"robustness-{options.database}-{options.seed}").resolve()
    rack = folder / "rack"
    shutil.rmtree(folder, ignore_errors=True)
    rack.mkdir(parents=True, exist_ok=True)
    # Clients tell of every lost connection; that is what happens here all the time.
    logging.basicConfig(filename=folder / "run.log", level=logging.WARNING, force=True)
    print(f"seed {options.seed}; the same again: {options.command}", flush=True)
    print(f"logs and report: {folder}", flush=True)
    with Meter("faults", len(options.plan())) as meter:
        result = run(options, rack, meter.show, early.is_set)
    table = report.rows(result.history, result.broken)
    report.save(result, table, folder)
    for item in result.broken[:20]:
        print(f"broken: {item.code}: {item.detail}")
    return not report.missed(result, table), report.text(result, table)


if __name__ == "__main__":
    sys.exit(main())
