"""A controller's warm view of the rack: follows the journal, and knows how fresh it is."""

import threading
from collections.abc import Callable
from dataclasses import replace

from oslo_log import log

from pondstack.db.connection.engine import Database
from pondstack.db.read.replica import OPERATIONS_AT_ONCE, Replica, differences, follow, load
from pondstack.domain.errors import Unavailable
from pondstack.domain.rack import HostReport, RackView
from pondstack.ledger.slice_moves import OutOfStep

LOG = log.getLogger(__name__)
CHECK_SECONDS = 300.0
"""How often the replayed view is compared with the tables: a difference is a bug, and is logged as one."""


class Follower:
    """Call poll() now and then, from one thread. `stale_seconds`: a view that was not refreshed for so long is refused.

    `clock` counts seconds, goes on while the process is stopped, and is compared with itself only.
    """

    def __init__(self, database: Database, stale_seconds: float, clock: Callable[[], float]) -> None:
        self._database = database
        self._stale = stale_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._followed: Replica | None = None
        self._read_at = 0.0
        self._checked_at = 0.0

    @property
    def sequence(self) -> int:
        """The last operation that was followed."""
        followed = self._followed
        return 0 if followed is None else followed.sequence

    def poll(self) -> None:
        """Follow to the end of the journal; raises Unavailable."""
        while True:
            started, last = self._clock(), self._followed
            followed = self._anew(started) if last is None else self._onward(last, started)
            with self._lock:
                self._followed, self._read_at = followed, started
            if last is None or followed.sequence - last.sequence < OPERATIONS_AT_ONCE:
                break
        if self._clock() - self._checked_at > CHECK_SECONDS:
            self.verify()

    def verify(self) -> int:
        """Compare with the tables and take those over; returns how many slices were told wrongly."""
        last = self._followed
        assert last is not None
        started = self._clock()
        warm, read = self._database.read(lambda session: (follow(session, last), load(session)))
        wrong = differences(warm.view, read.view)
        if warm.sequence == read.sequence and wrong:
            LOG.error("The journal tells %d slices otherwise than the ledger, for example %s", len(wrong), wrong[0])
        with self._lock:
            self._followed, self._read_at, self._checked_at = read, started, started
        return len(wrong)

    def view(self) -> tuple[RackView, int]:
        """Return the view, with ages as of now, and the leader's epoch; raises Unavailable when it is stale."""
        with self._lock:
            followed, age = self._followed, self._clock() - self._read_at
        if followed is None or age > self._stale:
            raise Unavailable("this controller's view of the rack is not fresh; look at the database, call again")
        hosts = {name: _older(report, age) for name, report in followed.view.hosts.items()}
        return replace(followed.view, hosts=hosts), followed.epoch

    def _anew(self, started: float) -> Replica:
        self._checked_at = started
        return self._database.read(load)

    def _onward(self, last: Replica, started: float) -> Replica:
        try:
            return self._database.read(lambda session: follow(session, last))
        except OutOfStep as error:
            LOG.info("The view of the rack is read anew: %s", error)
            return self._anew(started)


def _older(report: HostReport, seconds: float) -> HostReport:
    return replace(report, age_seconds=report.age_seconds + seconds)
