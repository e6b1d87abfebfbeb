"""Lent memory under any order of events, with calls of agents lost before or after their effect, or half done.

Nobody has a key of a buffer that is somebody else's, and a live key is never taken from its owner. A key whose maker's
answer was lost may live on a free buffer: it is dead before another borrower gets the buffer. Once faults stop and all
is given back, everything is free again, and anybody can have it.
"""

import contextlib
from dataclasses import dataclass, field
from uuid import UUID

import oslo_messaging
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pondstack.controller.lending.lenders import BufferSettler, Lenders
from pondstack.domain.causes import Cause
from pondstack.domain.errors import Conflict, InUse, NotFound, PondError
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import SliceState
from tests.fixtures.escrow import SEALER
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

SIZE, HOSTS = 64, ("h1", "h2", "h3")
FAULTS = ("before", "after", "late", "some")


@dataclass
class Entry:
    """A buffer in the book of a lender: who has live keys, of which generation; those up to `ended` are dead.

    `escrow`: nobody has got one of them but by the controller's word. `told`: to whom it said one.
    """

    borrowers: set[str] = field(default_factory=set)
    generation: int = 0
    ended: int = 0
    escrow: bool = False
    told: set[str] = field(default_factory=set)

    @property
    def known(self) -> set[str]:
        """Who has a live key, and knows it."""
        return self.borrowers & self.told if self.escrow else self.borrowers

    def end(self, generation: int) -> None:
        """End the keys up to this one."""
        self.ended = max(self.ended, generation)
        if self.generation <= generation:
            self.borrowers, self.told, self.escrow = set(), set(), False


@dataclass
class Host:
    """What one host really has: as a lender its buffers and their keys, as a borrower the keys that it opened."""

    life: str = ""
    kind: LenderKind = LenderKind.ACTIVE
    told: int = 0
    next_index: int = 0
    failed: set[int] = field(default_factory=set)
    buffers: dict[int, "Entry"] = field(default_factory=dict)
    opened: set[tuple[str, str, int]] = field(default_factory=set)
    links: set[tuple[str, str]] = field(default_factory=set)


class Agents:
    """The controller's calls of agents; each of `faults` loses one call before or after its effect, or makes it late.

    `some`: of what an agent is to end, it ends the first half, and says so. `late`: calls that nobody waits for any
    more, and that are still to be carried out.
    """

    def __init__(self, hosts: dict[str, Host]) -> None:
        self.hosts, self.faults, self.late = hosts, [], []

    def export(self, host, *, indexes, borrower, incarnation, generations, **_said):
        def work(found: Host):
            if found.life != incarnation or any(index not in found.buffers for index in indexes):
                raise NotFound("no such buffer")
            mine = {index: found.buffers[index] for index in indexes}
            if any(item.borrowers and borrower not in item.borrowers for item in mine.values()):
                raise InUse("another borrower's key lives")
            if any(generations[index] <= item.ended for index, item in mine.items()):
                raise Conflict("late")
            for index, item in mine.items():
                item.borrowers, item.generation, item.escrow = {borrower}, generations[index], False
            return {"incarnation": incarnation, "ticket": {}, "keys": {index: {} for index in indexes}}

        return self._call(host, work)

    def escrow(self, host, *, indexes, borrower, incarnation, generations, **_said):
        def work(found: Host):
            if found.life != incarnation or any(index not in found.buffers for index in indexes):
                raise NotFound("no such buffer")
            mine = {index: found.buffers[index] for index in indexes}
            if any(item.borrowers and not item.escrow for item in mine.values()):
                raise InUse("somebody's key lives")
            for index, item in mine.items():
                if generations[index] <= item.ended or (item.borrowers and item.generation != generations[index]):
                    raise Conflict("late")
            for index, item in mine.items():
                item.borrowers |= {borrower}
                item.generation, item.escrow = generations[index], True
            return {"incarnation": incarnation, "ticket": {}, "keys": {str(index): {} for index in indexes}}

        return self._call(host, work)

    def connect(self, host, *, lender, incarnation, **_said):
        def work(found: Host):
            if self.hosts[lender].life != incarnation:
                return False
            found.links.add((lender, incarnation))
            return True

        return self._call(host, work)

    def revoke(self, host, *, indexes, incarnation, generations, **_said):
        asked, indexes = set(indexes), self._some(indexes)

        def work(found: Host):
            found.failed = (found.failed | asked) - set(indexes)  # its device did not end the keys of the others
            mine = {index: found.buffers[index] for index in indexes if index in found.buffers}
            if found.life != incarnation:
                return list(indexes)
            for index, item in mine.items():
                item.end(generations[index])
            return [index for index in indexes if index not in mine or not mine[index].borrowers]

        return self._call(host, work)

    def get_lending(self, host):
        def work(found: Host):
            return {"incarnation": found.life, "failed": {str(index): "EIO" for index in found.failed}}

        return self._call(host, work)

    def give_back(self, host, *, lender, incarnation, indexes, **_said):
        indexes = self._some(indexes)

        def work(found: Host):
            found.opened -= {(lender, incarnation, index) for index in indexes}
            return list(indexes)

        return self._call(host, work)

    def _some(self, indexes):
        if self.faults[-1:] != ["some"]:
            return indexes
        self.faults.pop()
        return indexes[: len(indexes) // 2]

    def _call(self, host, work):
        found = self.hosts[host]
        fault = self.faults.pop() if self.faults else ""
        if fault == "before" or (found.kind is LenderKind.ZOMBIE and fault == "asleep"):
            raise oslo_messaging.MessagingTimeout(host)
        if fault == "late":
            self.late.append(lambda: work(found))
            raise oslo_messaging.MessagingTimeout(host)
        answer = work(found)
        if fault == "after":
            raise oslo_messaging.MessagingTimeout(host)
        return answer


class LentMemory(RuleBasedStateMachine):
    """Three hosts that lend to each other."""

    @initialize()
    def begin(self) -> None:
        store = MemoryStore()
        self.ledger = MemoryLedger(store, take_over(store))
        self.hosts = {name: Host() for name in HOSTS}
        self.agents = Agents(self.hosts)
        self.lenders = Lenders(self.ledger, self.agents, lambda: None, SEALER)
        self.settler = BufferSettler(self.ledger, self.agents, sealer=SEALER)
        self.number = self.reports = 0
        self.live: dict[tuple[str, str, int, int], str] = {}
        self.reclaims: dict[str, str] = {}
        for name in HOSTS:
            self.say(name)

    def operation(self) -> str:
        self.number += 1
        return str(UUID(int=self.number))

    def say(self, name: str) -> None:
        self.reports += 1
        borrowed = {"links": [list(link) for link in sorted(self.hosts[name].links)]}
        self.ledger.hosts.heartbeat(report(name, self.reports, pools=[], borrowed=borrowed))

    def tell(self, name: str) -> None:
        host = self.hosts[name]
        host.told += 1
        lender = Lender(name, host.life, host.kind, SIZE)
        self.ledger.buffers.delegate(lender, host.told, {index: index * SIZE for index in host.buffers})

    @rule(fault=st.sampled_from(FAULTS))
    def lose_a_call(self, fault: str) -> None:
        self.agents.faults.append(fault)

    @rule(which=st.integers(0, 9))
    def a_late_call_arrives(self, which: int) -> None:
        if self.agents.late:
            with contextlib.suppress(PondError):  # nobody hears its answer
                self.agents.late.pop(which % len(self.agents.late))()

    @rule()
    def give_up_waiting_for_an_acknowledgement(self) -> None:
        self.ledger.loans.release_abandoned(-1.0)

    @rule(name=st.sampled_from(HOSTS), count=st.integers(1, 3), kind=st.sampled_from(LenderKind))
    def lend(self, name: str, count: int, kind: LenderKind) -> None:
        host = self.hosts[name]
        host.life = host.life or self.operation()
        for _ in range(count):
            host.buffers[host.next_index] = Entry()
            host.next_index += 1
        host.kind = kind
        self.tell(name)

    @rule(name=st.sampled_from(HOSTS))
    def lose_the_memory(self, name: str) -> None:
        host = self.hosts[name]
        host.life, host.buffers, host.next_index = "", {}, 0
        self.tell(name)

    @rule(name=st.sampled_from(HOSTS), count=st.integers(1, 4), guaranteed=st.booleans(), acknowledges=st.booleans())
    def borrow(self, name: str, count: int, guaranteed: bool, acknowledges: bool) -> None:
        operation = self.operation()
        request = BorrowRequest(operation, name, count * SIZE, guaranteed)
        try:
            given = self.lenders.borrow(operation, request, SIZE)
        except PondError:
            return
        for lender, keys in given["lenders"].items():
            for index in keys["keys"]:
                if self.hosts[lender].life == keys["incarnation"] and int(index) in self.hosts[lender].buffers:
                    self.hosts[lender].buffers[int(index)].told.add(name)
            self.hosts[name].opened |= {(lender, keys["incarnation"], index) for index in keys["keys"]}
        if given["buffers"] and acknowledges:
            self.ledger.loans.acknowledge(operation, given["allocation_uuid"], name)

    @rule(which=st.integers(0, 9))
    def give_back(self, which: int) -> None:
        allocations = self.ledger.loans.allocations()
        if allocations:
            allocation = allocations[which % len(allocations)]
            self.lenders.give_back(self.operation(), allocation.uuid, allocation.host)

    @rule(name=st.sampled_from(HOSTS), count=st.integers(1, 4))
    def reclaim(self, name: str, count: int) -> None:
        """The host withdraws what it is told that nobody has."""
        if self.hosts[name].life:
            self.reclaims.setdefault(name, self.operation())
            try:
                free = self.lenders.reclaim(self.reclaims[name], name, SIZE * count)
            except (NotFound, Conflict):
                del self.reclaims[name]
                return
            for index in free:
                self.hosts[name].buffers.pop(index, None)
            self.tell(name)

    @rule()
    def settle(self) -> None:
        self.settler.run()

    @rule(name=st.sampled_from(HOSTS), crashes=st.booleans())
    def report_links(self, name: str, crashes: bool) -> None:
        """A host's report; its data plane may have crashed before."""
        if crashes:
            self.hosts[name].links.clear()
        self.say(name)

    @invariant()
    def nobody_has_a_key_of_what_is_anothers(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for item in self.ledger.buffers.find():
            host = self.hosts[item.lender]
            if host.life != item.incarnation:
                assert item.cause is Cause.LENDER_LOST
                continue
            known = host.buffers[item.index].known
            if item.state in (SliceState.ASSIGNING, SliceState.ONLINE):
                assert known <= {item.host}, (item, known)
            if item.escrowed and item.state is SliceState.FREE:
                assert known <= {item.promised_to}, (item, known)
            assert item.host != item.lender

    @invariant()
    def no_owner_loses_a_key(self) -> None:
        """What is late ends no key of a later owner."""
        if not hasattr(self, "ledger"):
            return
        before, self.live = self.live, {}
        for item in self.ledger.buffers.find():
            host = self.hosts[item.lender]
            if item.state is SliceState.ONLINE and host.life == item.incarnation:
                at = (item.lender, item.incarnation, item.index, item.generation)
                self.live[at] = item.host if item.host in host.buffers[item.index].borrowers else ""
                assert before.get(at, "") in ("", self.live[at]), (item, before[at])

    @invariant()
    def the_ledger_knows_what_lenders_have(self) -> None:
        if hasattr(self, "ledger"):
            known = {(item.lender, item.index) for item in self.ledger.buffers.find() if not item.reason}
            there = {(name, index) for name, host in self.hosts.items() for index in host.buffers}
            assert known <= there

    def teardown(self) -> None:
        """Faults stop, zombies wake, all is given back: everything is free, without a key."""
        if not hasattr(self, "ledger"):
            return
        self.agents.faults.clear()
        while self.agents.late:
            self.a_late_call_arrives(0)
        for name, host in self.hosts.items():
            host.kind = LenderKind.ACTIVE
            self.tell(name)
        for allocation in self.ledger.loans.allocations():
            self.lenders.give_back(self.operation(), allocation.uuid, allocation.host)
        for _ in range(3):
            self.settler.run()
        assert self.ledger.loans.allocations() == []
        left = self.ledger.buffers.find()
        assert {item.state for item in left} <= {SliceState.FREE}
        assert not any(item.promised_to or item.escrowed for item in left)
        for name in HOSTS:
            self.everything_can_be_had_by(name)

    def everything_can_be_had_by(self, name: str) -> None:
        for _ in range(2):
            operation = self.operation()
            request = BorrowRequest(operation, name, 99 * SIZE, guaranteed=False)
            try:
                given = self.lenders.borrow(operation, request, SIZE)
                break
            except InUse:  # of a key whose maker's answer was lost
                for _ in range(2):
                    self.settler.run()
        else:
            raise AssertionError("a key that nobody knows keeps a buffer from others")
        wanted = {at for at in self.there() if at[0] != name}
        assert {(item["lender"], item["index"]) for item in given["buffers"]} == wanted
        assert all(self.hosts[lender].buffers[index].borrowers <= {name} for lender, index in wanted)
        self.lenders.give_back(self.operation(), given["allocation_uuid"], name)
        self.settler.run()

    def there(self) -> set[tuple[str, int]]:
        return {(item.lender, item.index) for item in self.ledger.buffers.find() if not item.leaving}


LentMemory.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLentMemory = LentMemory.TestCase
