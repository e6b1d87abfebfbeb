"""A controller's part in the election: when to stand for it, to renew the lease, to step down. No thread, no sleep.

Zombieland section 4.1: the secondary takes over when the primary's heart beat ends. The heart beat is the lease.
"""

import threading
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from pondstack.domain.errors import NotLeader, Unavailable
from pondstack.ha.lease import Lease, LeaseStore, Terms


class Role(StrEnum):
    """What a controller is."""

    STANDBY = "standby"
    LEADER = "leader"


class HandOver(NamedTuple):
    """A lead that its holder gives up. `rests_until`: by its clock, when it may stand again with no one after it."""

    epoch: int
    to: str
    rests_until: float


class Candidate:
    """One controller in the election; thread-safe. Its owner calls tick() several times in a lease.

    `clock` counts seconds, goes on while the process is stopped, and is compared with itself only. `elected(epoch)` and
    `deposed(reason)` are called from tick() and must not block: a leader that does not tick loses the lease. So is
    `gives_way()`: whether this controller stands only when no other controller has stood for a while.
    """

    def __init__(
        self,
        store: LeaseStore,
        *,
        name: str,
        holder: str,
        terms: Terms,
        clock: Callable[[], float],
        elected: Callable[[int], None],
        deposed: Callable[[str], None],
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._name = name
        self._holder = holder
        self._terms = terms
        self._clock = clock
        self._elected = elected
        self._deposed = deposed
        self._gives_way = gives_way
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._ends = 0.0
        self._renewed = 0.0
        self._hand_over: HandOver | None = None
        self._over_since: tuple[int, float] | None = None

    @property
    def role(self) -> Role:
        """The role as of the last tick; only check() says whether this controller still may act."""
        return Role.STANDBY if self._epoch is None else Role.LEADER

    @property
    def epoch(self) -> int | None:
        """The epoch that this controller leads with, None in stand-by."""
        return self._epoch

    def check(self) -> None:
        """Raise NotLeader unless this controller leads and knows that its lease has not ended."""
        with self._lock:
            if self._epoch is None:
                raise NotLeader(f"controller {self._name} is in stand-by; call again, the leader answers")
            if self._clock() >= self._ends:
                raise NotLeader(f"controller {self._name} could not renew its lease in time; call again")

    def renewed(self, epoch: int, started: float) -> None:
        """Note that a transaction under `epoch`, begun at `started` by the clock, has moved the lease's end away."""
        with self._lock:
            if epoch == self._epoch and started > self._renewed:
                self._renewed = started
                self._ends = started + self._terms.lease_seconds - self._terms.margin_seconds

    def tick(self) -> None:
        """Do what is due now: read the lease in stand-by, renew it as leader."""
        if self._epoch is None:
            self._stand()
        else:
            self._renew(self._epoch)

    def hand_over(self, successor: str) -> None:
        """End the own lease for `successor` ("": for anybody) and step down. Raises NotLeader, Unavailable."""
        epoch = self._epoch
        if epoch is None:
            raise NotLeader(f"controller {self._name} does not lead; nothing to hand over")
        to = successor or "whoever stands next"
        # Before the row says so: from then on a tick may find it over, and a write be refused.
        self._hand_over = HandOver(epoch, to, self._clock() + self._terms.succession_seconds)
        self._store.hand_over(epoch, successor)
        self._end(epoch, f"handed over to {to}")

    def step_down(self, reason: str) -> None:
        """Stop acting now, whatever the row says; idempotent."""
        epoch = self._epoch
        if epoch is not None:
            self.lost(epoch, reason)

    def lost(self, epoch: int, reason: str) -> None:
        """Step down if `epoch` is still the own one: a write under it was refused."""
        mine = self._hand_over
        # The refusal may come of that: the row was written, and hand_over() has not come back yet.
        self._end(epoch, f"while it handed over to {mine.to}: {reason}" if mine and mine.epoch == epoch else reason)

    def _end(self, epoch: int, reason: str) -> None:
        with self._lock:
            if self._epoch != epoch:
                return
            self._epoch = None
        self._deposed(reason)

    def _stand(self) -> None:
        try:
            lease = self._store.read()
            if not self._may_stand(lease):
                return
            started = self._clock()
            if not self._store.take(lease.epoch, self._holder, self._terms.lease_seconds):
                return
        except Unavailable:
            return  # nobody can lead without the database; the next tick tries again
        epoch = lease.epoch + 1
        with self._lock:
            self._epoch = epoch
        self.renewed(epoch, started)
        self._over_since = None
        self._elected(epoch)

    def _may_stand(self, lease: Lease) -> bool:
        """Return whether the lease is over and this controller's turn.

        The named successor goes first for `succession_seconds`; when this controller gives way, all others go before it
        for as long again. This only delays it: a lease that nobody else takes, it takes.
        """
        if lease.remaining_seconds > 0:
            self._over_since = None
            return False
        if lease.successor == self._name:
            return True
        now = self._clock()
        mine = self._hand_over
        if mine is not None and lease.epoch == mine.epoch and now < mine.rests_until:
            return False  # it has just handed over, and nobody has followed yet
        if self._over_since is None or self._over_since[0] != lease.epoch:
            self._over_since = (lease.epoch, now)
        first = bool(lease.successor) + self._gives_way()
        return now - self._over_since[1] >= first * self._terms.succession_seconds

    def _renew(self, epoch: int) -> None:
        started = self._clock()
        if started - self._renewed < self._terms.renew_seconds:
            return
        try:
            self._store.renew(epoch, self._terms.lease_seconds)
        except NotLeader as error:
            self.step_down(error.message)
        except Unavailable as error:
            if self._clock() >= self._ends:
                self.step_down(f"the lease could not be renewed: {error.message}")
        else:
            self.renewed(epoch, started)
            if self._clock() >= self._ends:
                self.step_down("the renewal came too late")
