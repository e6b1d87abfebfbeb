"""The world of one history: who is there, what happens between two calls, and what must be so at the end."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID, uuid5

from pondstack.controller.mitigation.claims import covers_all
from pondstack.controller.mitigation.mitigator import Mitigator
from pondstack.domain.admission import MEMORY_CLASS
from pondstack.domain.errors import PondError, Unavailable
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState, MitigationTrigger
from pondstack.domain.mitigation_step import Limits
from pondstack.domain.sizing import Split
from pondstack.domain.states import OWNED, SliceState
from pondstack.domain.units import RESOURCE_CLASS
from pondstack.ledger.records import AllocationRecord
from pondstack.ledger.store import RememberedSplit
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import AllocationRow, MemoryStore

from ..invariants import Violation
from ..run import Outcome
from .agents import SimAgent, SimAgents
from .placement import POOL, SimPlacement
from .plan import SECONDS, SERVERS, History
from .servers import Guest, SimNova

SLICE_MIB = 1024
GUEST_MIB, POOL_MIB = 4096, 2048
SETTLE_SECONDS = 400.0
LIMITS = Limits(idle_seconds=20.0, copy_seconds=60.0, view_seconds=3.0, retry_seconds=4.0, retries=2)
VIEW_SECONDS = 1.0


class Killed(BaseException):
    """The controller is killed here."""


class Inline:
    """An executor that does all at once."""

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Run; a kill goes through."""
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001 (as an executor does)
            future.set_exception(error)
        return future


class World:
    """`draining`: no more faults."""

    hosts = ("h1", "h2")

    def __init__(self, history: History, tracing: bool) -> None:
        self.history, self.now, self.draining, self.steps = history, 0.0, False, 0
        self.rng = Random(f"world {history.seed}")
        self.names = UUID(int=history.seed)
        self.trace: list[str] = []
        self.counts: Counter[str] = Counter()
        self._tracing = tracing
        self.store = MemoryStore(clock=lambda: 1000.0 + self.now)
        self.pool = str(uuid5(self.names, "pool"))
        self.placement = SimPlacement(self, history.host_mib, 64 * SLICE_MIB)
        self.nova = SimNova(self)
        self.agents = {host: SimAgent(self, host) for host in self.hosts}
        self._seen_at = 0.0
        self._dead_until = 0.0
        self.mitigator: Mitigator | None = None
        self.done: Counter[str] = Counter()
        self._orders = 0
        self._placement_down = 0.0
        self._begin()

    def _begin(self) -> None:
        self.lead()
        self.for_agents.pools.register(
            uuid=self.pool, name="p", serial="S", driver="fake", address={}, slice_mib=SLICE_MIB, slices_total=64
        )
        for host in self.hosts:
            about = {"host": host, "sequence": 1, "epoch": 1, "version": "1"}
            self.for_agents.hosts.heartbeat({**about, "pools": [self.pool], "attached": [], "released": []})
        for number in range(SERVERS):
            uuid = str(uuid5(self.names, f"server {number}"))
            host = self.rng.choice(self.hosts)
            held = {host: {MEMORY_CLASS: GUEST_MIB - POOL_MIB}, POOL: {RESOURCE_CLASS: POOL_MIB}}
            if self.placement.place(uuid, held):
                self.nova.guests[uuid] = guest = Guest(uuid, host, GUEST_MIB, POOL_MIB)
                self.agents[host].attach(guest)

    def lead(self) -> None:
        """Have another controller lead."""
        row = self.store.tables.leadership[1]
        ledger = self.for_agents = MemoryLedger(self.store, self._take_over(row))
        self.mitigator = Mitigator(
            self._fragile(ledger),
            self.nova,
            self.placement,
            SimAgents(self),
            self.allocations,
            limits=lambda: LIMITS,
            most=lambda: (1, 2),
            executor=Inline(),
            changed=self._changed,
        )

    def _take_over(self, row: Any) -> int:
        self.store.tables.leadership[1] = replace(row, epoch=row.epoch + 1, holder="c", expires_at=1e12)
        return int(row.epoch + 1)

    def _fragile(self, ledger: MemoryLedger) -> MemoryLedger:
        """Return the controller's ledger: it may be killed before and after each of its commits."""
        world = self

        class Database:
            def write(self, work: Callable[[Any], Any], turn: AbstractContextManager[Any] | None = None) -> Any:
                world.moment("commit")
                answer = world.store.write(work, turn)
                world.moment("committed")
                return answer

            def read(self, work: Callable[[Any], Any]) -> Any:
                return world.store.read(work)

        return MemoryLedger(Database(), ledger.epoch)

    def allocations(self, consumer: str) -> list[AllocationRecord]:
        """Return a consumer's allocations, as the reader does."""
        rows = self.store.tables.allocations.values()
        return [self._record(row) for row in rows if row.consumer_uuid == consumer]

    def _record(self, row: AllocationRow) -> AllocationRecord:
        slices = (item.item for item in self.store.tables.slices.values())
        states = [item.state for item in slices if item.allocation_uuid == row.uuid]
        return AllocationRecord(
            uuid=row.uuid,
            consumer_uuid=row.consumer_uuid,
            host=row.host,
            pool_uuid=row.pool_uuid,
            pool_name="p",
            extents=tuple({"start": item.start, "count": item.count} for item in row.extents),
            slice_mib=SLICE_MIB,
            pool_mib=row.pool_mib,
            guest_mib=row.guest_mib,
            project_id="project",
            user_id="",
            state=min(states, key=list(SliceState).index, default=SliceState.SANITIZING),
            generation=0,
            created_at=row.created_at,
        )

    def placed(self, guest: Guest, pool_mib: int) -> None:
        """Have a scheduler tell what a server was placed with."""
        split = Split(guest.guest_mib - pool_mib, pool_mib, "static", 1.0, "for the test")
        self.for_agents.remember_splits([RememberedSplit(guest.uuid, "", split)])

    def consumer_of(self, allocation: str) -> str:
        """Return whose an allocation is."""
        row = self.store.tables.allocations.get(allocation)
        return "" if row is None else row.consumer_uuid

    # What happens between two calls

    def note(self, text: str) -> None:
        """Note something for the trace."""
        if self._tracing:
            self.trace.append(f"{self.now:8.3f} {text}")

    def count(self, what: str) -> None:
        """Count something that happened."""
        self.counts[what] += 1
        self.note(what)

    def moment(self, where: str) -> None:
        """Let time pass, and others act; perhaps the controller is killed."""
        self.steps += 1
        self.now += self.rng.uniform(0.0, 0.1)
        self.others()
        if not self.draining and self.rng.random() < self.history.kills:
            self.count(f"controller killed: {where}")
            raise Killed

    def before(self, what: str) -> None:
        """A call of the controller's begins."""
        self.moment(what)
        if not self.draining and self.rng.random() < self.history.losses / 4:
            self._placement_down = self.now + self.rng.uniform(0.2, 5.0)
        if self._placement_down > self.now and what == "placement":
            self.count("placement down")
            raise Unavailable("Placement does not answer")

    def after(self, what: str) -> None:
        """A call of the controller's was done."""
        self.moment(what)
        if self.loses():
            self.count(f"answer of {what} lost")
            raise Unavailable(f"{what} does not answer")

    def loses(self) -> bool:
        """Whether a call, or an answer, is lost now."""
        return not self.draining and self.rng.random() < self.history.losses

    def others(self) -> None:
        """Let everybody else do a little."""
        for agent in self.agents.values():
            agent.tick()
            if not self.draining and self.rng.random() < self.history.agents:
                agent.crash()
        self.nova.further()
        if not self.draining and self.rng.random() < self.history.users:
            self.nova.act()
        if self.now - self._seen_at > VIEW_SECONDS + (0.0 if self.draining else self.history.stale):
            self._seen_at = self.now
            for guest in self.nova.guests.values():
                row = self.store.tables.splits.get(guest.uuid)
                guest.known = row is not None and row.corrected

    # The operator

    def operate(self) -> None:
        """Begin a mitigation, or abort one."""
        assert self.mitigator is not None
        uuid = str(uuid5(self.names, f"server {self.rng.randrange(SERVERS)}"))
        try:
            if self.rng.random() < self.history.aborts * 20:
                self.mitigator.abort(uuid)
                self.count("aborted")
                return
            forced, method = self.rng.random() < 0.2, self.rng.choice((None, None, *MitigationMethod))
            again = self.done[uuid] > 0 and not forced
            self._orders += 1
            operation = str(uuid5(self.names, f"mitigate {self._orders}"))
            self.mitigator.begin(
                uuid, trigger=MitigationTrigger.OPERATOR, forced=forced, method=method, operation_id=operation
            )
            if again:
                raise Violation("twice", f"{uuid} is mitigated once more, and nobody forced that")
            self.count("begun")
        except PondError as error:
            self.note(f"operator is refused: {error}")

    def _changed(self, item: Mitigation) -> None:
        self.note(f"{item.consumer_uuid[:8]} {item.method} {item.state} {item.reason}")

    # A history

    def live(self) -> None:
        """Go through it; raises Violation."""
        while self.now < SECONDS:
            self._turn(operates=True)
        self.draining = True
        self.note("the faults stop")
        for agent in self.agents.values():
            agent.down_until = 0.0
        ends = self.now + SETTLE_SECONDS
        while self.now < ends:
            self._turn(operates=False)
            if not self.nova.at_work:
                self.nova.settle()
            if not (found := list(self.disagreements())):
                return
        raise Violation("not_settled", "; ".join(found))

    def _turn(self, *, operates: bool) -> None:
        self.now += self.rng.uniform(0.1, 0.8)
        self.others()
        if self.mitigator is None:
            if self.now < self._dead_until:
                return
            self.lead()
        try:
            if operates and self.rng.random() < 0.15:
                self.operate()
            assert self.mitigator is not None
            self.mitigator.run()
        except Killed:
            self.mitigator = None
            self._dead_until = self.now + self.rng.uniform(0.2, 4.0)
        except PondError as error:
            self.note(f"round: {error}")
        self._count_ends()

    def _count_ends(self) -> None:
        rows = [item for item, _ in self.store.tables.mitigations.values()]
        self.done = Counter(item.consumer_uuid for item in rows if item.state is MitigationState.DONE)

    def disagreements(self) -> Iterator[str]:
        """Yield what is not in order once everything has ended."""
        for item, _ in self.store.tables.mitigations.values():
            if item.is_open:
                yield f"mitigation of {item.consumer_uuid} is {item.state}: {item.reason}"
        if self.nova.at_work or any(agent.outbox for agent in self.agents.values()):
            yield "others are at work"
        for guest in self.nova.guests.values():
            yield from self._of(guest)

    def _of(self, guest: Guest) -> Iterator[str]:
        held = self.placement.claims[guest.uuid].held
        hosts = {record.host for record in self.allocations(guest.uuid) if record.state in OWNED}
        all_local, row = covers_all(held, guest.guest_mib), self.store.tables.splits.get(guest.uuid)
        corrected = row is not None and row.corrected
        if guest.task or not guest.running:
            yield f"{guest.uuid} is off"
        elif hosts - {guest.host}:
            yield f"{guest.uuid} has slices on {hosts}, and is on {guest.host}"
        elif all_local and (hosts or POOL in held or guest.domain != "local" or guest.pages != "local"):
            yield f"{guest.uuid} claims all as local, and {hosts} {held} {guest}"
        elif not all_local and (not hosts or held.get(POOL, {}).get(RESOURCE_CLASS) != guest.pool_mib):
            yield f"{guest.uuid} claims {held} and holds slices on {hosts}"
        elif not all_local and held[guest.host][MEMORY_CLASS] != guest.guest_mib - guest.pool_mib:
            yield f"{guest.uuid} claims {held}"
        elif corrected and not all_local:
            yield f"{guest.uuid} is corrected, and claims {held}"
        elif self._last(guest.uuid) is MitigationState.DONE and not (corrected and all_local):
            yield f"{guest.uuid} was mitigated: {corrected}, and claims {held}"

    def _last(self, uuid: str) -> MitigationState | None:
        mine = [item for item, _ in self.store.tables.mitigations.values() if item.consumer_uuid == uuid]
        return max(mine, key=lambda item: item.created_at).state if mine else None


def run(
    history: History,
    *,
    tracing: bool = False,
    broken: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Outcome:
    """Run a history; `broken` puts a fault into the code under test meanwhile."""
    outcome = Outcome(history)
    with broken():
        world = World(history, tracing)
        try:
            world.live()
        except Violation as violation:
            outcome.code, outcome.detail = violation.code, violation.detail
    outcome.steps, outcome.virtual_seconds, outcome.faults = world.steps, world.now, world.counts
    outcome.acknowledged, outcome.trace = sum(world.done.values()), world.trace
    return outcome
