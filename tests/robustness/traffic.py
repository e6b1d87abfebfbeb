"""Workers that boot, migrate and delete guests through agents, and workers that call the controller directly.

Each has a seeded generator of its own. Some callers give up after the first silence, as real ones do: what they asked
for may have happened, and is cleaned up later by the same operation id.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pondstack.domain.errors import Conflict
from pondstack.domain.requests import AssignRequest
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.rpc.wire import Grant
from tests.robustness.caller import Caller
from tests.robustness.history import Kind, Outcome, Recorder
from tests.robustness.loans import Borrower, lend
from tests.robustness.own_host import OwnHost
from tests.robustness.rack import Rack

SIZES = (1, 1, 2, 4)
GIVE_UP, MIGRATE = 0.1, 0.4
"""Shares of the calls that give up at the first silence, and of the guests that move to the other host."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that a worker waits between two steps, at most; `direct`, `agents`, `loans`: how many workers."""

    think_seconds: float = 0.2
    direct: int = 3
    agents: int = 3
    loans: int = 2


class Direct:
    """Assign, acknowledge, release, from a host of our own."""

    def __init__(self, rack: Rack, host: OwnHost, caller: Caller) -> None:
        self._api = rack.client()
        self._host = host
        self._caller = caller
        self.held: list[Grant] = []
        self.open: list[tuple[str, AssignRequest]] = []

    def turn(self, think: Callable[[], None]) -> None:
        """One guest's life; what it holds when the run ends it keeps."""
        self.take(give_up=self._caller.rng.random() < GIVE_UP)
        think()
        if not self._caller.over.is_set():
            self.drop()

    def take(self, give_up: bool = False) -> None:
        """Have slices assigned and acknowledge them."""
        rng, operation_id = self._caller.rng, self._caller.new_id()
        request = AssignRequest(
            self._caller.new_id(),
            self._host.name,
            self._host.pool,
            pool_mib=rng.choice(SIZES) * DEFAULT_SLICE_MIB,
            guest_mib=8 * DEFAULT_SLICE_MIB,
        )
        self._assign(operation_id, request, 1 if give_up else float("inf"))

    def _assign(self, operation_id: str, request: AssignRequest, tries: float) -> None:
        about = {"operation_id": operation_id, "consumer_uuid": request.consumer_uuid}
        answer = self._caller.persist(
            Kind.ASSIGN,
            self._host.name,
            about,
            lambda: self._api.assign(operation_id, request),
            tries=tries,
        )
        if answer.outcome is Outcome.UNKNOWN:
            self.open.append((operation_id, request))
        elif answer.value is not None:
            self._online(answer.value)

    def _online(self, grant: Grant) -> None:
        try:
            self._host.online(grant)
        except Conflict:
            return  # the controller had it given back while the answer was on its way
        operation_id = self._caller.new_id()
        self._caller.persist(
            Kind.ACKNOWLEDGE,
            self._host.name,
            self._about(operation_id, grant),
            lambda: self._api.acknowledge(
                operation_id=operation_id, allocation_uuid=grant.allocation_uuid, host=self._host.name
            ),
        )
        self.held.append(grant)

    def drop(self) -> None:
        """Release all that is held."""
        while self.held:
            grant = self.held.pop()
            self._host.offline_here(grant.allocation_uuid)
            operation_id = self._caller.new_id()
            answer = self._caller.persist(
                Kind.RELEASE,
                self._host.name,
                self._about(operation_id, grant),
                partial(self._release, operation_id, grant),
            )
            if answer.outcome is Outcome.OK:
                self._host.settled(grant.allocation_uuid)

    def _release(self, operation_id: str, grant: Grant) -> None:
        self._api.release(operation_id=operation_id, allocation_uuid=grant.allocation_uuid, host=self._host.name)

    @staticmethod
    def _about(operation_id: str, grant: Grant) -> dict[str, Any]:
        return {
            "operation_id": operation_id,
            "consumer_uuid": grant.consumer_uuid,
            "allocation_uuid": grant.allocation_uuid,
            "pool_uuid": grant.pool_uuid,
        }

    def settle(self) -> None:
        """Ask again, by the same ids, for what nobody knows the outcome of; what was granted is held then."""
        while self.open:
            self._assign(*self.open.pop(), tries=float("inf"))


class Guests:
    """Attach, sometimes migrate, detach, through real agents."""

    def __init__(self, rack: Rack, caller: Caller) -> None:
        self._api = rack.agent_client()
        self._pool = rack.pool
        self._hosts = list(rack.agents)
        self._caller = caller
        self.held: list[tuple[str, str, str]] = []
        self.open: set[tuple[str, str]] = set()

    def turn(self, think: Callable[[], None]) -> None:
        """One guest's life; what it holds when the run ends it keeps."""
        rng = self._caller.rng
        consumer, size = self._caller.new_id(), rng.choice(SIZES)
        here, there = rng.sample(self._hosts, 2)
        if not self.attach(consumer, here, size, give_up=rng.random() < GIVE_UP):
            self.settle()
            return
        think()
        if rng.random() < MIGRATE and self.attach(consumer, there, size):
            self._detach(*self.held.pop(0))
            think()
        if not self._caller.over.is_set():
            self.drop()

    def attach(self, consumer: str, host: str, slices: int, give_up: bool = False) -> bool:
        """Attach pool memory for a guest; what is left open is detached by settle()."""
        operation_id = self._caller.new_id()
        about = {"operation_id": operation_id, "consumer_uuid": consumer}
        request = AssignRequest(
            consumer, host, self._pool, pool_mib=slices * DEFAULT_SLICE_MIB, guest_mib=8 * DEFAULT_SLICE_MIB
        )
        answer = self._caller.persist(
            Kind.ATTACH,
            host,
            about,
            lambda: self._api.attach(operation_id, request),
            tries=1 if give_up else float("inf"),
        )
        if answer.value is None:
            self.open.add((consumer, host))
            return False
        self.held.append((consumer, host, answer.value.allocation_uuid))
        return True

    def drop(self) -> None:
        """Detach all that is held."""
        while self.held:
            self._detach(*self.held.pop())
        self.settle()

    def _detach(self, consumer: str, host: str, allocation_uuid: str = "") -> None:
        operation_id = self._caller.new_id()
        about = {"operation_id": operation_id, "consumer_uuid": consumer, "allocation_uuid": allocation_uuid}
        answer = self._caller.persist(
            Kind.DETACH,
            host,
            {**about, "pool_uuid": self._pool},
            lambda: self._api.detach(host, operation_id=operation_id, consumer_uuid=consumer),
        )
        if answer.outcome is Outcome.UNKNOWN:
            self.open.add((consumer, host))

    def settle(self) -> None:
        """Detach what may have been attached without our knowing, as Nova cleans up after a failed boot."""
        while self.open:
            self._detach(*self.open.pop())


class Traffic:
    """All workers, in a thread each."""

    def __init__(self, rack: Rack, recorder: Recorder, seed: int, pace: Pace) -> None:
        self._rack = rack
        self._pace = pace
        self._stop = threading.Event()
        self.host = OwnHost("host-direct", rack.bus, rack.pool)
        count = pace.direct + pace.agents + pace.loans
        callers = [Caller(recorder, self._stop, random.Random(f"{seed}-{n}")) for n in range(count)]
        self._callers = callers
        self.direct = [Direct(rack, self.host, caller) for caller in callers[: pace.direct]]
        self.guests = [Guests(rack, caller) for caller in callers[pace.direct : pace.direct + pace.agents]]
        self.loans = [Borrower(rack, recorder, caller) for caller in callers[pace.direct + pace.agents :]]
        self._threads = [
            threading.Thread(target=self._work, args=(worker, caller), name=f"worker-{number}", daemon=True)
            for number, (worker, caller) in enumerate(
                zip([*self.direct, *self.guests, *self.loans], callers, strict=True)
            )
        ]
        self._probes = Prober(rack, self.host, recorder, seed)

    def start(self) -> None:
        """Begin."""
        self.host.start()
        lend(self._rack)
        for thread in self._threads:
            thread.start()

    def probe(self, host: str = "") -> None:
        """Begin fresh writes now: the next answer after a fault is one of these or a worker's."""
        self._probes.fire(host)

    def _work(self, worker: Direct | Guests | Borrower, caller: Caller) -> None:
        def think() -> None:
            self._stop.wait(caller.rng.uniform(0.0, self._pace.think_seconds))

        while not self._stop.is_set():
            worker.turn(think)
            think()

    def quiet(self, join_seconds: float = 180.0) -> None:
        """Let the workers come to an end with what they hold, then clear up what is open."""
        self._stop.set()
        for thread in [*self._threads, *self._probes.threads]:
            thread.join(join_seconds)
            if thread.is_alive():
                raise RuntimeError(f"{thread.name} does not come to an end")
        self._patient()
        for worker in self._workers():
            worker.settle()
        # Something is held in each way, whatever the moment at which the run ended.
        self.loans[0].take()
        self.direct[0].take()
        self.guests[0].attach(self.guests[0]._caller.new_id(), next(iter(self._rack.agents)), 2)

    def _patient(self) -> None:
        """Have calls repeated again, though the workers were told to stop."""
        for caller in self._callers:
            caller.over = threading.Event()

    def drop(self) -> None:
        """Give everything back."""
        for worker in self._workers():
            worker.drop()

    def end(self) -> None:
        """Stop reporting."""
        self.host.stop()

    def _workers(self) -> list[Direct | Guests | Borrower]:
        return [*self.direct, *self.guests, *self.loans, *self._probes.workers]


class Prober:
    """Starts short lives of guests at a given moment, several one after the other, so that one always begins soon."""

    COUNT, APART_SECONDS = 3, 0.15

    def __init__(self, rack: Rack, host: OwnHost, recorder: Recorder, seed: int) -> None:
        self._rack, self._host, self._recorder = rack, host, recorder
        self._rng = random.Random(f"{seed}-probe")
        self._over = threading.Event()
        self.threads: list[threading.Thread] = []
        self.workers: list[Direct | Guests] = []

    def fire(self, host: str = "") -> None:
        """Start the probes; those of former faults that have ended are forgotten."""
        alive = [i for i, thread in enumerate(self.threads) if thread.is_alive() or self.workers[i].open]
        self.threads = [self.threads[i] for i in alive]
        self.workers = [self.workers[i] for i in alive]
        for number in range(self.COUNT):
            caller = Caller(self._recorder, self._over, random.Random(self._rng.getrandbits(64)))
            direct = Direct(self._rack, self._host, caller)
            guests = Guests(self._rack, caller)
            delay = number * self.APART_SECONDS
            target, arguments = (_guest, (guests, host, delay)) if host else (_direct, (direct, delay))
            thread = threading.Thread(target=target, args=arguments, name=f"probe-{number}", daemon=True)
            self.threads.append(thread)
            self.workers.append(guests if host else direct)
            thread.start()


def _direct(worker: Direct, delay_seconds: float) -> None:
    threading.Event().wait(delay_seconds)
    worker.take()
    worker.drop()


def _guest(worker: Guests, host: str, delay_seconds: float) -> None:
    threading.Event().wait(delay_seconds)
    if worker.attach(worker._caller.new_id(), host, 1):
        worker.drop()
