"""A stream of grants and releases that goes on while servers die, and what must be true of the ledger afterwards."""

import itertools
import threading
import time
from dataclasses import dataclass, field
from uuid import uuid4

from sqlalchemy import func, select

from pondstack.db.connection.engine import Database
from pondstack.db.models import AllocationRow, OperationRow, SliceRow
from pondstack.db.store import SQL
from pondstack.domain.errors import Unavailable
from pondstack.domain.requests import AssignRequest
from pondstack.ledger.ledger import Ledger
from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.wait import wait_until
from tests.fixtures.ledgers import POOL, report

SLICES = 48
KEPT = 24
"""Every fourth grant is kept, up to so many; the others are released, so that the stream does not end."""


def fill(database: Database, epoch: int) -> Ledger:
    """A ledger with one pool and one host."""
    ledger = Ledger(database, epoch, store=SQL)
    ledger.pools.register(
        uuid=POOL, name="pool0", serial="S1", driver="fake", address={"path": "/x"}, slice_mib=1024, slices_total=SLICES
    )
    ledger.hosts.heartbeat(report("h1"))
    return ledger


@dataclass
class Stream:
    """Workers that repeat each operation with its id until it is acknowledged, as clients do."""

    ledger: Ledger
    workers: int = 2
    acknowledged: list[tuple[str, str, float]] = field(default_factory=list)
    """(operation id, kind, moment), in the order of the answers."""

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._kept: list[str] = []
        self._begun: list[str] = []
        self._threads = [threading.Thread(target=self._work) for _ in range(self.workers)]
        self.errors: list[BaseException] = []

    def __enter__(self) -> "Stream":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self._threads)
        assert not self.errors, self.errors

    def wait_for(self, more: int, seconds: float = 60.0) -> None:
        """Wait for so many more acknowledged operations."""
        wanted = len(self.acknowledged) + more
        if not wait_until(lambda: len(self.acknowledged) >= wanted or self.errors, seconds, 0.01):
            raise DaemonFailed(f"{len(self.acknowledged)} of {wanted} operations within {seconds} s")

    def longest_gap(self) -> float:
        """Seconds in which nothing was acknowledged, at the worst."""
        moments = [moment for _, _, moment in self.acknowledged]
        return max(later - earlier for earlier, later in itertools.pairwise(moments))

    def _work(self) -> None:
        try:
            number = 0
            while not self._stop.is_set():
                number += 1
                self._cycle(keep=number % 4 == 0 and len(self._kept) < KEPT)
        except BaseException as error:  # noqa: BLE001 (shown by __exit__)
            self.errors.append(error)

    def _cycle(self, keep: bool) -> None:
        wanted = AssignRequest(str(uuid4()), "h1", POOL, 1024, guest_mib=2048)
        grant_id, release_id = str(uuid4()), str(uuid4())
        self._begun.append(grant_id)
        grant = self._until_acknowledged(grant_id, "assign", lambda: self.ledger.slices.assign(grant_id, wanted))
        if keep:
            self._kept.append(grant["allocation_uuid"])
            return
        uuid = grant["allocation_uuid"]
        self._until_acknowledged(release_id, "release", lambda: self.ledger.slices.release(release_id, uuid, "h1"))
        self._until_acknowledged(
            None, "sanitized", lambda: self.ledger.slices.sanitized(POOL, [grant["extents"][0]["start"]])
        )

    def _until_acknowledged(self, operation_id, kind, call):
        while True:
            try:
                answer = call()
            except Unavailable:
                continue
            if operation_id:
                self.acknowledged.append((operation_id, kind, time.monotonic()))
            return answer

    def give_back(self) -> None:
        """Release what was kept, so that the pool is free again."""
        for uuid in self._kept:
            self.ledger.slices.release(str(uuid4()), uuid, "h1")
        assert self.ledger.slices.sanitized(POOL, range(SLICES)) == len(self._kept)

    def verify(self, database: Database) -> None:
        """Nothing acknowledged is lost, nothing happened twice, no slice has two owners; read from `database`."""
        journal, epochs, allocations, owners = database.read(_everything)
        times = {(operation_id, kind): count for operation_id, kind, count in journal}
        lost = [entry[:2] for entry in self.acknowledged if entry[:2] not in times]
        assert not lost, f"{len(lost)} of {len(self.acknowledged)} acknowledged operations are lost"
        assert set(times.values()) == {1}
        assert epochs == sorted(epochs), "the journal's sequence is not the order of the epochs"
        assert allocations == set(self._kept), "a grant is there that nobody knows, or one is missing"
        assert sorted(owners) == sorted(allocations), "a grant does not have exactly its slice"


def _everything(session):
    """What verify() needs, in one snapshot."""
    journal = session.execute(
        select(OperationRow.operation_id, OperationRow.kind, func.count()).group_by(
            OperationRow.operation_id, OperationRow.kind
        )
    ).all()
    epochs = session.execute(select(OperationRow.epoch).order_by(OperationRow.sequence)).scalars().all()
    allocations = set(session.execute(select(AllocationRow.uuid)).scalars())
    owners = session.execute(select(SliceRow.allocation_uuid).where(SliceRow.state == "assigning")).scalars().all()
    return journal, list(epochs), allocations, owners
