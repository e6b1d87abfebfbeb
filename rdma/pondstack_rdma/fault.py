"""Faults for any transport: seeded delays, lost messages, broken links and batches that end early.

For tests and simulations; a lender is passed through, a borrower's link is wrapped. Same seed, same plan and same order
of calls: same faults. With several threads the order is theirs.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pondstack.domain.errors import PondError
from pondstack_rdma.base import Lender, Link, Transport
from pondstack_rdma.errors import PartialBatch, TransportGone, TransportTimeout
from pondstack_rdma.model import Key, Operation, Ticket


class Fault(StrEnum):
    """What happens to one call."""

    NONE = "none"
    LOST = "lost"
    """The request is lost: nothing is carried out, and nobody answers."""
    UNANSWERED = "unanswered"
    """All is carried out, and the answer is lost."""
    BROKEN = "broken"
    """The link breaks before anything is carried out, and stays broken."""
    PARTIAL = "partial"
    """The first operations of a batch are carried out, then the link breaks."""


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """How often what happens: chances between 0 and 1 per call, of all faults together at most 1."""

    seed: int
    lost: float = 0.0
    unanswered: float = 0.0
    broken: float = 0.0
    partial: float = 0.0
    delayed: float = 0.0
    """Independent of the faults."""
    max_delay_seconds: float = 0.01


@dataclass(frozen=True, slots=True)
class Fate:
    """What was drawn for one call; `done` is of a partial batch."""

    fault: Fault
    done: int
    delay_seconds: float


def draw(dice: random.Random, plan: FaultPlan, operations: int) -> Fate:
    """Draw the fate of a call with so many operations. Pure but for the dice, which it always throws four times."""
    chance, late, share, length = (dice.random() for _ in range(4))
    delay = length * plan.max_delay_seconds if late < plan.delayed else 0.0
    for fault in (Fault.LOST, Fault.UNANSWERED, Fault.BROKEN, Fault.PARTIAL):
        odds: float = getattr(plan, fault.value)
        if chance < odds:
            return Fate(fault, int(share * operations), delay)
        chance -= odds
    return Fate(Fault.NONE, operations, delay)


class FaultTransport(Transport):
    """Wraps a transport. `pause` takes seconds; a test passes one that does not wait."""

    def __init__(self, inner: Transport, plan: FaultPlan, pause: Callable[[float], None] = time.sleep) -> None:
        self.characteristics = inner.characteristics
        self._inner = inner
        self._plan = plan
        self._pause = pause
        self._dice = random.Random(plan.seed)
        self._lock = threading.Lock()
        self.history: list[Fate] = []
        """What was drawn so far; the `repr` of a plan and this tell a run."""

    def lend(self, name: str) -> Lender:
        """Start the inner transport's lender."""
        return self._inner.lend(name)

    def connect(self, ticket: Ticket, timeout_seconds: float) -> "FaultLink":
        """Connect; that is not disturbed."""
        return FaultLink(self._inner.connect(ticket, timeout_seconds), self._next, self._pause, timeout_seconds)

    def _next(self, operations: int) -> Fate:
        with self._lock:
            fate = draw(self._dice, self._plan, operations)
            self.history.append(fate)
            return fate


class FaultLink(Link):
    """Wraps a link. A time-out waits as long as a real one, by `pause`."""

    def __init__(
        self, inner: Link, fate: Callable[[int], Fate], pause: Callable[[float], None], timeout_seconds: float
    ) -> None:
        self.characteristics = inner.characteristics
        self._inner = inner
        self._fate = fate
        self._pause = pause
        self._seconds = timeout_seconds
        self._broken = False

    def open(self, key: Key) -> None:
        """Open, or not."""
        self._raise(self._disturbed(0, lambda _: self._inner.open(key))[1])

    def forget(self, key: Key) -> None:
        """Forget; that asks nobody, and is not disturbed."""
        self._inner.forget(key)

    def flush(self) -> None:
        """Flush, or not."""
        self._raise(self._disturbed(0, lambda _: self._inner.flush())[1])

    def close(self) -> None:
        """Close the inner link."""
        self._inner.close()

    def _run(self, operations: Sequence[Operation], _local: Sequence[memoryview]) -> tuple[int, PondError | None]:
        return self._disturbed(len(operations), lambda count: self._inner.batch(operations[:count]))

    def _disturbed(self, operations: int, work: Callable[[int], None]) -> tuple[int, PondError | None]:
        """Do `work` on as many operations as the fate allows: how many are known to be complete, and what failed."""
        if self._broken:
            return 0, TransportGone("the link broke before (injected); connect again")
        fate = self._fate(operations)
        if fate.delay_seconds:
            self._pause(fate.delay_seconds)
        self._broken = fate.fault in (Fault.BROKEN, Fault.PARTIAL)
        try:
            if fate.fault not in (Fault.LOST, Fault.BROKEN):
                work(fate.done if fate.fault is Fault.PARTIAL else operations)
        except PartialBatch as error:
            return error.done, error.reason
        except PondError as error:
            return 0, error
        return self._outcome(fate, operations)

    def _outcome(self, fate: Fate, operations: int) -> tuple[int, PondError | None]:
        if fate.fault is Fault.NONE:
            return operations, None
        if self._broken:
            return fate.done if fate.fault is Fault.PARTIAL else 0, TransportGone("the link broke (injected)")
        self._pause(self._seconds)
        return 0, TransportTimeout(f"no answer within {self._seconds:g} s (injected)")

    @staticmethod
    def _raise(error: PondError | None) -> None:
        if error is not None:
            raise error
