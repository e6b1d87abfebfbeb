"""A stand-by's replica of the rack: it follows the journal, and knows how fresh it is."""

import threading
from collections.abc import Callable
from dataclasses import replace

from oslo_log import log

from pondstack.db.connection.engine import Database
from pondstack.db.read.replica import OPERATIONS_AT_ONCE, Replica, differences, follow, load
from pondstack.domain.errors import Unavailable
from pondstack.domain.rack import HostReport, RackView
from pondstack.ledger.moves import OutOfStep

LOG = log.getLogger(__name__)
CHECK_SECONDS = 300.0
"""How often the replica is compared with the tables: a difference is a bug, and is logged as one."""


class Follower:
    """Follows the journal. Call poll() periodically, from one thread; a view older than `stale_seconds` is refused.

    `clock` counts seconds, goes on while the process is stopped, and is compared with itself only.
    """

    def __init__(self, database: Database, stale_seconds: float, clock: Callable[[], float]) -> None:
        self._database = database
        self._stale = stale_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._replica: Replica | None = None
        self._read_at = 0.0
        self._checked_at = 0.0

    @property
    def sequence(self) -> int:
        """The last operation of the journal that was replayed."""
        replica = self._replica
        return 0 if replica is None else replica.sequence

    def poll(self) -> None:
        """Follow to the end of the journal; raises Unavailable."""
        while True:
            started, last = self._clock(), self._replica
            replica = self._load(started) if last is None else self._follow(last, started)
            with self._lock:
                self._replica, self._read_at = replica, started
            if last is None or replica.sequence - last.sequence < OPERATIONS_AT_ONCE:
                break
        if self._clock() - self._checked_at > CHECK_SECONDS:
            self.verify()

    def verify(self) -> int:
        """Compare the replica with the tables and replace it; returns in how many slices it was wrong."""
        last = self._replica
        assert last is not None
        started = self._clock()
        replayed, read = self._database.read(lambda session: (follow(session, last), load(session)))
        wrong = differences(replayed.view, read.view)
        if replayed.sequence == read.sequence and wrong:
            LOG.error("The replica differs from the ledger in %d slices, for example %s", len(wrong), wrong[0])
        with self._lock:
            self._replica, self._read_at, self._checked_at = read, started, started
        return len(wrong)

    def view(self) -> tuple[RackView, int]:
        """Return the view, with ages as of now, and the leader's epoch; raises Unavailable when it is stale."""
        with self._lock:
            replica, age = self._replica, self._clock() - self._read_at
        if replica is None or age > self._stale:
            raise Unavailable("this controller's view of the rack is not fresh; look at the database, call again")
        hosts = {name: _older(report, age) for name, report in replica.view.hosts.items()}
        return replace(replica.view, hosts=hosts), replica.epoch

    def _load(self, started: float) -> Replica:
        self._checked_at = started
        return self._database.read(load)

    def _follow(self, last: Replica, started: float) -> Replica:
        try:
            return self._database.read(lambda session: follow(session, last))
        except OutOfStep as error:
            LOG.info("The replica is loaded again: %s", error)
            return self._load(started)


def _older(report: HostReport, seconds: float) -> HostReport:
    return replace(report, age_seconds=report.age_seconds + seconds)
