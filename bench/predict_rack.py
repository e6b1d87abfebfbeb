"""The controller of `make bench-predict`, in a process of its own: a ledger of the wanted size behind a leader's RPC.

Claims are generated: what Placement would answer, it answers at once.
"""

import argparse
import subprocess
import sys
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from oslo_service import backend

if __name__ == "__main__":
    backend.init_backend(backend.BackendType.THREADING)  # before all that would choose another

# isort: split
import oslo_messaging
from oslo_config import cfg
from sqlalchemy import insert

from pondstack.controller.gate import Gate
from pondstack.controller.leader.split_endpoint import SplitEndpoint
from pondstack.controller.node.follower import Follower
from pondstack.controller.pool.split_board import SplitBoard
from pondstack.controller.pool.split_service import SplitService
from pondstack.controller.resources import since_boot
from pondstack.db.connection.engine import Database
from pondstack.db.models import SplitRow
from pondstack.db.read.reader import SqlReader
from pondstack.db.store import SQL
from pondstack.domain.allowance import Allowance
from pondstack.domain.rack import RackView
from pondstack.domain.sizing import Features, Policy, PondSpecs
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.ledger.ledger import Ledger
from pondstack.prediction import table
from pondstack.prediction.balance import Balance, Point
from pondstack.prediction.latency import PDMS
from pondstack.prediction.serving import flavor_key
from pondstack.prediction.untouched_table import COLD
from pondstack.rpc import targets
from pondstack.rpc import transport as rpc
from pondstack.rpc.identity.identity import Role
from pondstack.rpc.wire import Report
from tests.fixtures import lead
from tests.fixtures.identities import Identities
from tests.fixtures.schema import migrate

INSTANCES = 10_000
PROJECTS = 1_000
HOSTS_PER_POOL = 16  # Pond section 4.1: pools of 8 to 16 sockets
DOWN_SECONDS = 86_400.0
READY = "ready"


class Models:
    """Both models serve, and know many projects; all data are made up."""

    def __init__(self) -> None:
        sizes = [f"{memory_mib}/{vcpus}" for memory_mib in (4096, 16384, 65536) for vcpus in (2, 4, 8)]
        projects = [COLD, "bench", *(f"project{number:04}" for number in range(PROJECTS))]
        insensitive, untouched = Point(20.0, 1.0, {"threshold": 2.0}), Point(25.0, 1.0, {"known": 0.0, "cold": 0.0})
        points = {f"{pdm:g}": Balance(insensitive, untouched) for pdm in (0, *PDMS)}
        self._about = table.join(
            {
                "version": "um-bench",
                "projects": {name: {size: [0.15, 20, 0.15] for size in sizes} for name in projects},
            },
            {"version": "li-bench", "projects": {name: {size: [9.0, 20] for size in sizes} for name in projects}},
            points,
            percent=15,
            min_local_percent=10,
        )

    def describe(self) -> dict[str, Any]:
        """Return the table."""
        return self._about

    def allowance(self) -> Allowance:
        """Return a budget that is never used up."""
        return Allowance(1e9, {"um-bench": 0.001, "li-bench": 0.001})

    def note(self, items: object) -> None:
        """Take nothing off."""


class FormerWay:
    """get_split as it was: each call reads the whole ledger, and all claims."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self, board: SplitBoard, splits: SplitService) -> None:
        self._board, self._splits = board, splits

    def get_split(self, _context: Any, *, features: dict[str, Any]) -> dict[str, Any]:
        """Return the split of a VM."""
        self._board.refresh()
        return self._splits.split(features).to_wire()


class Controller:
    """The process, from the bench's side: it serves once the with block is entered."""

    def __init__(self, folder: Path, hosts: int, slices: int, url: str) -> None:
        self._command = [sys.executable, "-m", "bench.predict_rack", str(folder), str(hosts), str(slices), url]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != READY:
            raise RuntimeError("the controller of the bench did not start")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def fill(database: Database, ledger: Ledger, hosts: int, slices: int) -> None:
    """Make pools, hosts and remembered splits."""
    names = [f"host{number:05}" for number in range(hosts)]
    count = -(-hosts // HOSTS_PER_POOL)
    for number in range(count):
        pool = str(uuid.uuid4())
        ledger.pools.register(
            uuid=pool,
            name=f"pool{number:03}",
            serial=f"bench-{number}",
            driver="none",
            address={},
            slice_mib=DEFAULT_SLICE_MIB,
            slices_total=-(-slices // count),
        )
        for host in names[number * HOSTS_PER_POOL :][:HOSTS_PER_POOL]:
            ledger.hosts.heartbeat(Report(host, 1, ledger.epoch, "bench", (pool,)).to_wire())
    key = flavor_key(Features("", 16384, 4, specs=PondSpecs(Policy.AUTO)))
    rows = [
        {
            "instance_uuid": str(uuid.uuid4()),
            "flavor_key": key,
            "local_mib": 14336,
            "pool_mib": 2048,
            "source": "static",
            "confidence": 1.0,
            "reason": "static policy: 15 % of 16384 MiB, rounded down to 1024 MiB slices",
            "created_at": 0.0,
        }
        for _ in range(INSTANCES)
    ]
    database.write(lambda session: session.execute(insert(SplitRow), rows))


def serve(folder: Path, hosts: int, slices: int, url: str) -> None:
    """Serve until the standard input ends."""
    database = Database.from_url(migrate(folder / "ledger.db"))
    ledger = Ledger(database, lead(database, "bench"), DOWN_SECONDS, store=SQL)
    fill(database, ledger, hosts, slices)
    follower = Follower(database, DOWN_SECONDS, since_boot)

    def warm() -> RackView:
        follower.poll()
        return follower.view()[0]

    def claims(view: RackView) -> dict[str, dict[str, int]]:
        return {pool: {} for pool in view.pools}

    def make(view: Any) -> tuple[SplitBoard, SplitService]:
        board = SplitBoard(database, ledger, view, claims, DOWN_SECONDS)
        return board, SplitService(ledger, board, Models(), refresh_seconds=2.0)

    _board, splits = make(warm)
    endpoints = [SplitEndpoint(splits=splits, gate=Gate()), FormerWay(*make(SqlReader(database).rack))]
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    Identities(folder / "credentials").set(conf, "controller/bench")
    server = rpc.get_transport(conf, Role.CONTROLLER, url).server(targets.controller_target("bench"), endpoints)
    splits.start()
    server.start()
    print(READY, flush=True)
    sys.stdin.read()
    server.stop()
    splits.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("hosts", type=int)
    parser.add_argument("slices", type=int)
    parser.add_argument("url")
    options = parser.parse_args()
    serve(options.folder, options.hosts, options.slices, options.url)
