"""`make bench-ledger`: the ledger's cycles per second beside Placement's, on one MariaDB, in one run.

A cycle of ours is what one VM costs the controller: assign, acknowledge, release, sanitised; four transactions, each
with its epoch check and its journal entry. A cycle of Placement is what the same VM costs there at the least: PUT and
DELETE of its allocation, of one resource class of one provider. Both in this process, without sockets: our Ledger by
calls, Placement's real WSGI application (noauth2) by its WSGI interface. Rounds of the two alternate, so that whatever
else the machine does meets both; the ratio of each pair of rounds is one sample.
"""

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import webob
from oslo_config import cfg
from oslo_service import backend

from bench.figures import spread
from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.store import SQL
from pondstack.domain.requests import AssignRequest
from pondstack.domain.units import DEFAULT_SLICE_MIB, RESOURCE_CLASS
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.wire import Report
from pondstack_rack.servers import MariaDBServer
from tests.fixtures import lead

SLICES = 64
POOL_MIB = 2 * DEFAULT_SLICE_MIB
HOST = "host1"
TARGET = 1.0
"""A VM's bookkeeping here costs no more than its claim there: then the controller is not what limits a rack's boots."""

Cycle = Callable[[int], None]


class OurLedger:
    """The ledger on a database of its own, with one pool for each thread."""

    def __init__(self, url: str, threads: int) -> None:
        database = Database.from_url(url, max_pool_size=threads + 1)
        migration.sync(database)
        epoch = lead(database, "bench")
        self.ledger = Ledger(database, epoch, down_seconds=3600.0, store=SQL)
        self.pools = [str(uuid.uuid4()) for _ in range(threads)]
        for number, pool in enumerate(self.pools):
            self.ledger.pools.register(
                uuid=pool,
                name=f"pool{number}",
                serial=f"bench-{number}",
                driver="none",
                address={},
                slice_mib=DEFAULT_SLICE_MIB,
                slices_total=SLICES,
            )
        report = Report(HOST, sequence=1, epoch=epoch, version="bench", pools=tuple(self.pools))
        self.ledger.hosts.heartbeat(report.to_wire())

    def cycle(self, thread: int) -> None:
        """Do what one VM costs the controller."""
        pool, consumer = self.pools[thread], str(uuid.uuid4())
        request = AssignRequest(consumer, HOST, pool, POOL_MIB, guest_mib=4 * POOL_MIB)
        effect = self.ledger.slices.assign(str(uuid.uuid4()), request)
        allocation = effect["allocation_uuid"]
        self.ledger.slices.acknowledge(str(uuid.uuid4()), allocation, HOST)
        self.ledger.slices.release(str(uuid.uuid4()), allocation, HOST)
        indexes = [extent["start"] + i for extent in effect["extents"] for i in range(extent["count"])]
        if self.ledger.slices.sanitized(pool, indexes) != len(indexes):
            raise RuntimeError("slices of a finished cycle did not come free")


class ItsPlacement:
    """Placement's WSGI application on a database of its own, with one provider for each thread."""

    def __init__(self, url: str, threads: int) -> None:
        from placement import conf as placement_conf
        from placement import db_api, deploy

        conf = cfg.ConfigOpts()
        placement_conf.register_opts(conf)
        conf.set_override("connection", url, group="placement_database")
        conf([], default_config_files=[], default_config_dirs=[])
        conf.set_override("max_pool_size", threads + 1, group="placement_database")
        conf.set_override("sync_on_startup", True, group="placement_database")
        conf.set_override("auth_strategy", "noauth2", group="api")
        db_api.configure(conf)
        self.application = deploy.loadapp(conf)
        self.providers = [str(uuid.uuid4()) for _ in range(threads)]
        self._call("PUT", f"/resource_classes/{RESOURCE_CLASS}")
        for number, provider in enumerate(self.providers):
            self._call("POST", "/resource_providers", {"name": f"pool{number}", "uuid": provider})
            inventory = {"total": SLICES * DEFAULT_SLICE_MIB, "step_size": DEFAULT_SLICE_MIB}
            body = {"resource_provider_generation": 0, "inventories": {RESOURCE_CLASS: inventory}}
            self._call("PUT", f"/resource_providers/{provider}/inventories", body)

    def _call(self, method: str, path: str, body: Any = None) -> None:
        request = webob.Request.blank(path, method=method)
        request.headers["X-Auth-Token"] = "admin"
        request.headers["OpenStack-API-Version"] = "placement 1.38"
        if body is not None:
            request.body = json.dumps(body).encode()
            request.content_type = "application/json"
        answer = request.get_response(self.application)
        if answer.status_int >= 300:
            raise RuntimeError(f"Placement answers {answer.status} to {method} {path}: {answer.text}")

    def cycle(self, thread: int) -> None:
        """Do what one VM costs Placement."""
        consumer = str(uuid.uuid4())
        body = {
            "allocations": {self.providers[thread]: {"resources": {RESOURCE_CLASS: POOL_MIB}}},
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
            "project_id": "bench",
            "user_id": "bench",
        }
        self._call("PUT", f"/allocations/{consumer}", body)
        self._call("DELETE", f"/allocations/{consumer}")


def rate(cycle: Cycle, threads: int, cycles: int) -> float:
    """Return cycles per second, `cycles` of them shared among `threads`."""
    each = max(cycles // threads, 1)

    def work(thread: int) -> None:
        for _ in range(each):
            cycle(thread)

    with ThreadPoolExecutor(threads) as pool:
        begun = time.perf_counter()
        list(pool.map(work, range(threads)))
        return each * threads / (time.perf_counter() - begun)


def compare(ours: Cycle, theirs: Cycle, threads: int, cycles: int, rounds: int) -> tuple[list[float], list[float]]:
    """Return the rates of both, one for each round; who goes first alternates. The warm-up is not counted."""
    for cycle in (ours, theirs):
        rate(cycle, threads, max(cycles // 4, threads))
    mine: list[float] = []
    its: list[float] = []
    for number in range(rounds):
        pairs = [(mine, ours), (its, theirs)]
        for rates, cycle in pairs if number % 2 == 0 else reversed(pairs):
            rates.append(rate(cycle, threads, cycles))
    return mine, its


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when the median ratio holds the target for one thread and for many."""
    parser = argparse.ArgumentParser(prog="make bench-ledger", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="pairs of rounds (ROUNDS)")
    parser.add_argument("--cycles", type=int, default=100, help="cycles in a round (CYCLES)")
    parser.add_argument("--threads", type=int, default=8, help="threads of the second table row (THREADS)")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    backend.init_backend(backend.BackendType.THREADING)
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as folder:
        server = MariaDBServer(Path(folder))
        print("starting MariaDB, making both schemas", flush=True)
        server.start()
        try:
            ours = OurLedger(server.database_url("pondstack"), options.threads)
            theirs = ItsPlacement(server.database_url("placement"), options.threads)
            lines = [_measure(ours, theirs, count, options) for count in (1, options.threads)]
        finally:
            server.stop()
    print(f"\n{__doc__.split(chr(10) * 2)[1]}\n")
    print(f"n = {options.rounds} rounds of {options.cycles} cycles each; median (least - most)")
    print("threads   ledger cycles/s          Placement cycles/s       ratio ledger : Placement")
    for _, line in lines:
        print(line)
    worst = min(ratio for ratio, _ in lines)
    print(f"{'OK' if worst >= TARGET else 'FAILED'}: least median ratio {worst:.2f}, target >= {TARGET:.2f}")
    return 0 if worst >= TARGET else 1


def _measure(ours: OurLedger, theirs: ItsPlacement, threads: int, options: argparse.Namespace) -> tuple[float, str]:
    print(f"measuring with {threads} thread{'s' if threads > 1 else ''}", flush=True)
    mine, its = compare(ours.cycle, theirs.cycle, threads, options.cycles, options.rounds)
    ratios = [one / other for one, other in zip(mine, its, strict=True)]
    columns = "   ".join(f"{spread(values, digits):<22}" for values, digits in ((mine, 0), (its, 0), (ratios, 2)))
    return statistics.median(ratios), f"{threads:7d}   {columns.rstrip()}"


if __name__ == "__main__":
    sys.exit(main())
