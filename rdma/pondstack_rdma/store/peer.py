"""One lender, as its borrower sees it: the link, whether it works, when to connect again, and how fast it is.

The lock guards the state and is held during no I/O. A link that failed is closed by `mend`, in the background: closing
waits for other threads that may still wait for an answer, and a page fault must not wait for them.
"""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pondstack.domain.errors import PondError
from pondstack_rdma.base import Link
from pondstack_rdma.errors import AccessRefused, PartialBatch, TransportGone, TransportTimeout
from pondstack_rdma.model import Key, Operation, Read
from pondstack_rdma.store.latency import Latencies
from pondstack_rdma.store.policy import backoff_seconds


class PeerState(StrEnum):
    """Whether accesses are tried."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Retry:
    """When to connect again: after `first_seconds`, then twice as long each time, up to `most_seconds`."""

    first_seconds: float = 0.1
    most_seconds: float = 30.0


@dataclass(slots=True)
class PeerCounts:
    """What happened with one lender; counters only rise."""

    calls: int = 0
    pages: int = 0
    failures: int = 0
    timeouts: int = 0
    refusals: int = 0
    corrupt: int = 0
    connects: int = 0


class Peer:
    """A lender. `connect` makes a new link, and raises PondError."""

    def __init__(
        self, name: str, connect: Callable[[], Link], clock: Callable[[], float], dice: random.Random, retry: Retry
    ) -> None:
        self.name = name
        self.counts = PeerCounts()
        self.reads, self.writes = Latencies(), Latencies()
        self._connect = connect
        self._clock, self._dice, self._retry = clock, dice, retry
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._worn: list[Link] = []
        self._tries = 0
        self._next = self._down_since = clock()

    @property
    def state(self) -> PeerState:
        """Whether there is a link that works as far as known."""
        return PeerState.UP if self._link is not None else PeerState.DOWN

    def down_seconds(self) -> float:
        """How long there has been no link; 0 when there is one."""
        with self._lock:
            return 0.0 if self._link is not None else self._clock() - self._down_since

    def run(self, operations: Sequence[Operation]) -> tuple[int, PondError | None]:
        """Carry out operations of at most `max_batch`, at once or not at all: how many are complete, and what failed.

        After TransportGone nobody knows of the further ones; after any other error they were not carried out.
        """
        link = self._link
        if link is None:
            return 0, TransportGone(f"lender {self.name} is not connected")
        begun = self._clock()
        done, error = _transfer(link, operations)
        (self.reads if isinstance(operations[0], Read) else self.writes).record(self._clock() - begun)
        with self._lock:
            self.counts.calls += 1
            self.counts.pages += done
        if error is not None:
            self._note(link, error)
        return done, error

    @property
    def max_batch(self) -> int:
        """How many operations `run` takes at once."""
        link = self._link
        return link.characteristics.max_batch if link else 1

    def replace(self, connect: Callable[[], Link]) -> None:
        """Connect this way from now on, and soon: the lender has given out a new ticket."""
        with self._lock:
            self._connect = connect
            self._tries, self._next = 0, self._clock()

    def distrust(self) -> int:
        """Count a page that came back corrupt, and return how many did so far."""
        with self._lock:
            self.counts.corrupt += 1
            return self.counts.corrupt

    def open(self, key: Key) -> PondError | None:
        """Make a key ready, while the lender can still be asked; what failed."""
        link = self._link
        if link is None:
            return TransportGone(f"lender {self.name} is not connected")
        try:
            link.open(key)
        except PondError as error:
            self._note(link, error)
            return error
        return None

    def forget(self, key: Key) -> None:
        """Give back what the link holds for a key."""
        link = self._link
        if link is not None:
            link.forget(key)

    def mend(self) -> bool:
        """Close worn links, and connect again when that is due; True when there is a new link. In one thread only."""
        with self._lock:
            worn, self._worn = self._worn, []
            due = self._link is None and self._clock() >= self._next
            connect = self._connect
        for link in worn:
            link.close()
        if not due:
            return False
        try:
            link = connect()
        except PondError:
            with self._lock:
                self._later()
            return False
        with self._lock:
            self._link = link
            self.counts.connects += 1
        return True

    def works(self) -> None:
        """Begin with short pauses again: a link has proved itself."""
        with self._lock:
            self._tries = 0

    def probe(self) -> None:
        """See whether the lender is there, when nobody else asks it anything."""
        link = self._link
        if link is not None:
            try:
                link.flush()
            except PondError as error:
                self._note(link, error)

    def due_seconds(self) -> float | None:
        """In how many seconds `mend` has something to do; None for never."""
        with self._lock:
            if self._worn:
                return 0.0
            return None if self._link is not None else max(self._next - self._clock(), 0.0)

    def close(self) -> None:
        """Hang up."""
        with self._lock:
            links, self._worn, self._link = self._worn + ([self._link] if self._link else []), [], None
        for link in links:
            link.close()

    def _note(self, link: Link, error: PondError) -> None:
        with self._lock:
            self.counts.failures += 1
            self.counts.timeouts += isinstance(error, TransportTimeout)
            self.counts.refusals += isinstance(error, AccessRefused)
            # A refusal says that the link works, unless the driver ends it with the refusal.
            if isinstance(error, AccessRefused) and not link.characteristics.refusal_ends_link:
                return
            if self._link is link:  # else another thread has noticed before
                self._link = None
                self._worn.append(link)
                self._down_since = self._clock()
                self._later()

    def _later(self) -> None:
        pause = backoff_seconds(self._tries, self._retry.first_seconds, self._retry.most_seconds, self._dice.random())
        self._tries += 1
        self._next = self._clock() + pause


def _transfer(link: Link, operations: Sequence[Operation]) -> tuple[int, PondError | None]:
    try:
        link.batch(operations)
    except PartialBatch as error:
        return error.done, error.reason or error
    except PondError as error:
        return 0, error
    return len(operations), None
