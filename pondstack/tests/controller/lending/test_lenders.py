"""The leader and memory that hosts lend: keys, and what follows once somebody lets go. Agents are plain objects."""

from dataclasses import dataclass, field
from uuid import uuid4

import oslo_messaging
import pytest

from pondstack.controller.lending.lenders import BufferSettler, Lenders
from pondstack.domain.causes import Cause
from pondstack.domain.errors import AgentUnavailable, BufferShortage, HostUnusable, InUse, StaleEpoch
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import SliceState
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

SIZE = 64


@dataclass
class Agents:
    """Lenders and borrowers as the controller calls them. `keys`: live ones, (lender, index) to borrower."""

    keys: dict[tuple[str, int], str] = field(default_factory=dict)
    shared: dict[tuple[str, int], str] = field(default_factory=dict)
    """Of buffers in use, who has a key besides."""
    used: set[tuple[str, int]] = field(default_factory=set)
    prepared: dict[tuple[str, int], str] = field(default_factory=dict)
    ended: list[dict[int, int]] = field(default_factory=list)
    keep: set[tuple[str, int]] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    refuse: dict[str, Exception] = field(default_factory=dict)
    in_use: set[tuple[str, int]] = field(default_factory=set)
    """Buffers whose keys their lender cannot end now: it answers with the others."""
    failed: dict[str, str] | None = field(default_factory=dict)
    """What a lender says of buffers whose keys its device did not end; None: an agent of before says nothing."""
    lives: dict[str, str] = field(default_factory=dict)

    def export(self, host, *, indexes, borrower, incarnation, generations, **_said):
        self._asked(host)
        assert sorted(generations) == sorted(indexes)
        for index in indexes:
            if self.keys.get((host, index), borrower) != borrower and self.shared.get((host, index)) != borrower:
                raise InUse(f"buffer {index} has a key of {self.keys[host, index]}")
            self.shared.pop((host, index), None)
            self.keys[host, index] = borrower
            self.used.add((host, index))
        return {"incarnation": incarnation, "ticket": {}, "keys": {index: f"key {index}" for index in indexes}}

    def share(self, host, *, indexes, borrower, incarnation, **_said):
        self._asked(host)
        self.shared |= {(host, index): borrower for index in indexes}
        return {"incarnation": incarnation, "ticket": {}, "keys": {index: f"key {index}" for index in indexes}}

    def revoke(self, host, *, indexes, generations, **_said):
        self._asked(host)
        self.ended.append(generations)
        ended = [index for index in indexes if (host, index) not in self.in_use]
        for index in ended:
            self.keys.pop((host, index), None)
        return ended

    def get_lending(self, host):
        self._asked(host)
        answer = {"incarnation": self.lives[host]}
        return answer if self.failed is None else answer | {"failed": self.failed}

    def prepare(self, host, *, lender, keys, **_said):
        self._asked(host)
        self.prepared |= {(lender, index): host for index in keys}
        return sorted(keys)

    def give_back(self, host, *, lender, indexes, **_said):
        self._asked(host)
        return [index for index in indexes if (lender, index) not in self.keep]

    def _asked(self, host):
        if host in self.down:
            raise oslo_messaging.MessagingTimeout(host)
        if host in self.refuse:
            raise self.refuse[host]


class LentRack:
    """Hosts h1 and h2 lend four buffers each; h3 borrows."""

    def __init__(self):
        store = MemoryStore()
        self.ledger = MemoryLedger(store, take_over(store))
        for host in ("h1", "h2", "h3"):
            self.ledger.hosts.heartbeat(report(host, pools=[], borrowed={"lenders": []}))
        self.lives = {host: str(uuid4()) for host in ("h1", "h2")}
        for host in self.lives:
            self.lend(host)
        self.agents, self.settled = Agents(lives=self.lives), 0
        self.lenders = Lenders(self.ledger, self.agents, self._settle)
        self.settler = BufferSettler(self.ledger, self.agents)

    def lend(self, host, indexes=range(4), kind=LenderKind.ACTIVE):
        return self.ledger.buffers.delegate(
            Lender(host, self.lives[host], kind, SIZE), 1, {index: index * SIZE for index in indexes}
        )

    def borrow(self, count=2, operation=None, guaranteed=True):
        request = BorrowRequest("vm1", "h3", count * SIZE, guaranteed)
        return self.lenders.borrow(operation or str(uuid4()), request, SIZE)

    def states(self):
        return sorted(str(item.state) for item in self.ledger.buffers.find())

    def _settle(self):
        self.settled += 1


@pytest.fixture
def rack():
    return LentRack()


def test_a_borrower_gets_keys_of_each_lender_and_the_same_again(rack):
    given = rack.borrow(operation="op-1")
    assert sorted(given["lenders"]) == ["h1", "h2"]
    assert set(rack.agents.keys.values()) == {"h3"}
    assert rack.borrow(operation="op-1") == given


def test_what_was_given_back_is_free_only_after_its_keys_are_dead(rack):
    given = rack.borrow()
    rack.lenders.give_back("op-2", given["allocation_uuid"], "h3")
    assert rack.settled == 1
    rack.agents.down = {"h1"}
    rack.settler.run()
    assert rack.states() == ["free"] * 7 + ["sanitizing"]
    assert len(rack.agents.keys) == 1
    rack.agents.down = set()
    rack.settler.run()
    assert rack.states() == ["free"] * 8
    assert rack.agents.keys == {}


def test_a_lender_that_cannot_end_a_key_keeps_its_buffer_from_all_others(rack):
    given = rack.borrow()
    lender, index = next(iter(rack.agents.keys))
    rack.agents.in_use = {(lender, index)}
    rack.lenders.give_back("op-2", given["allocation_uuid"], "h3")
    for _ in range(2):
        rack.settler.run()
        assert rack.states() == ["free"] * 7 + ["sanitizing"]
    rack.agents.in_use = set()
    rack.settler.run()
    assert (rack.states(), rack.agents.keys) == (["free"] * 8, {})


def test_a_key_that_the_device_does_not_end_sets_its_buffer_aside(rack):
    given = rack.borrow()
    lender, index = next(iter(rack.agents.keys))
    rack.agents.in_use, rack.agents.failed = {(lender, index)}, {str(index): "ibv_dereg_mr: EIO"}
    rack.lenders.give_back("op-2", given["allocation_uuid"], "h3")
    for _ in range(2):
        rack.settler.run()
        assert rack.states() == ["free"] * 7 + ["quarantined"]
    [aside] = [item for item in rack.ledger.buffers.find() if item.state is SliceState.QUARANTINED]
    assert (aside.lender, aside.index, aside.cause) == (lender, index, Cause.REVOKE_FAILED)
    assert aside.reason == "revoke_failed: ibv_dereg_mr: EIO"
    with pytest.raises(BufferShortage):
        rack.borrow(count=8)
    rack.agents.in_use = set()
    rack.settler.run()
    assert rack.states() == ["free"] * 8


def test_a_buffer_whose_key_never_ends_goes_with_its_lender(rack):
    given = rack.borrow()
    lender, index = next(iter(rack.agents.keys))
    rack.agents.in_use, rack.agents.failed = {(lender, index)}, {str(index): "ibv_dereg_mr: EIO"}
    rack.lenders.give_back("op-2", given["allocation_uuid"], "h3")
    rack.settler.run()
    rack.lives[lender] = str(uuid4())  # an operator ended the lender's process
    rack.ledger.buffers.delegate(Lender(lender, rack.lives[lender], LenderKind.ACTIVE, SIZE), 2, {})
    assert rack.states() == ["free"] * 4


@pytest.mark.parametrize("failed", [None, {"3": "another buffer's"}])
def test_an_agent_that_gives_no_reason_has_its_buffer_wait(rack, failed):
    given = rack.borrow()
    rack.agents.in_use, rack.agents.failed = {next(iter(rack.agents.keys))}, failed
    rack.lenders.give_back("op-2", given["allocation_uuid"], "h3")
    rack.settler.run()
    assert rack.states() == ["free"] * 7 + ["sanitizing"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [({"down": {"h2"}}, AgentUnavailable), ({"refuse": {"h2": StaleEpoch("an older one")}}, StaleEpoch)],
)
def test_without_all_keys_nobody_gets_anything(rack, fault, error):
    vars(rack.agents).update(fault)
    with pytest.raises(error):
        rack.borrow(4)
    assert rack.states() == ["free"] * 4 + ["releasing"] * 4
    vars(rack.agents).update(down=set(), refuse={})
    for _ in range(2):
        rack.settler.run()
    assert (rack.states(), rack.agents.keys) == (["free"] * 8, {})
    assert rack.ledger.loans.allocations() == []


def test_an_attempt_that_failed_takes_nothing_from_one_that_was_answered(rack):
    """Both are of one operation: the borrower asked again because the first one took long."""
    given = rack.borrow(4, operation="op-1")
    rack.ledger.loans.acknowledge("op-1", given["allocation_uuid"], "h3")
    rack.agents.down = {"h2"}
    with pytest.raises(AgentUnavailable):
        rack.borrow(4, operation="op-1")
    assert rack.states() == ["free"] * 4 + ["online"] * 4


def test_a_lender_gets_its_memory_back_step_by_step(rack):
    given = rack.borrow(8)
    rack.ledger.loans.acknowledge("op-1", given["allocation_uuid"], "h3")
    assert rack.lenders.reclaim("op-2", "h1", 2 * SIZE) == []
    rack.agents.keep = {("h1", 0)}
    rack.settler.run()
    assert rack.lenders.reclaim("op-2", "h1", 2 * SIZE) == [], "the key of what came back lives until the next round"
    rack.settler.run()
    assert rack.lenders.reclaim("op-2", "h1", 2 * SIZE) == [1]
    rack.agents.keep = set()
    for _ in range(2):
        rack.settler.run()
    assert rack.lenders.reclaim("op-2", "h1", 2 * SIZE) == [0, 1]
    with pytest.raises(BufferShortage):
        rack.borrow(1)


def test_what_a_lender_lost_is_forgotten_once_its_borrower_let_go(rack):
    given = rack.borrow(8)
    rack.lives["h1"] = str(uuid4())
    assert rack.lend("h1", range(1)) == (1, 4)
    assert rack.states() == ["assigning"] * 4 + ["free"] + ["quarantined"] * 4
    rack.agents.down = {"h3"}
    rack.settler.run()
    assert rack.states().count("quarantined") == 4
    rack.agents.down = set()
    rack.settler.run()
    assert rack.states() == ["assigning"] * 4 + ["free"]
    assert rack.ledger.loans.allocations()[0].uuid == given["allocation_uuid"]


def test_a_fenced_borrower_loses_its_keys_before_anybody_gets_its_buffers(rack):
    given = rack.borrow(8)
    rack.ledger.failures.fence_host("h3", "burnt", force=True)
    assert rack.states() == ["quarantined"] * 8
    rack.agents.down = {"h1"}
    rack.settler.run()
    assert rack.states() == ["free"] * 4 + ["quarantined"] * 4
    assert {lender for lender, _ in rack.agents.keys} == {"h1"}
    rack.agents.down = set()
    rack.settler.run()
    assert (rack.states(), rack.agents.keys) == (["free"] * 8, {})
    assert rack.ledger.loans.allocations() == []
    rack.lenders.give_back("op-9", given["allocation_uuid"], "h3")  # its word comes late


def test_what_a_fenced_borrower_can_still_reach_stays_aside(rack):
    rack.borrow(8)
    rack.ledger.failures.fence_host("h3", "burnt", force=True)
    rack.agents.in_use = {("h2", 0), ("h2", 3)}
    rack.settler.run()
    assert rack.states() == ["free"] * 6 + ["quarantined"] * 2
    rack.agents.in_use = set()
    rack.settler.run()
    assert (rack.states(), rack.agents.keys) == (["free"] * 8, {})


def test_what_a_fenced_host_lent_is_lost(rack):
    given = rack.borrow(8)
    rack.ledger.failures.fence_host("h1", "burnt", force=True)
    assert rack.states() == ["assigning"] * 4 + ["quarantined"] * 4
    rack.settler.run()
    assert rack.states() == ["assigning"] * 4
    assert [item.uuid for item in rack.ledger.loans.allocations()] == [given["allocation_uuid"]]


def test_a_loan_that_is_never_acknowledged_comes_back(rack):
    """Its borrower died, or its controller did before the answer."""
    rack.borrow(8)
    rack.settler.run()
    assert rack.states() == ["assigning"] * 8
    impatient = BufferSettler(rack.ledger, rack.agents, abandoned_seconds=lambda: -1.0)
    rack.agents.down = {"h3"}
    impatient.run()
    assert rack.states() == ["releasing"] * 8, "its borrower has not let go"
    assert set(rack.agents.keys.values()) == {"h3"}
    rack.agents.down = set()
    for _ in range(2):
        rack.settler.run()
    assert (rack.states(), rack.agents.keys) == (["free"] * 8, {})
    assert rack.ledger.loans.allocations() == []


def test_a_repetition_makes_no_key_of_what_went_back(rack):
    given = rack.borrow(2, operation="op-1")
    first = given["buffers"][0]
    rack.lenders.give_back("op-2", given["allocation_uuid"], "h3", [(first["incarnation"], first["index"])])
    rack.settler.run()
    again = rack.borrow(2, operation="op-1")
    assert again["buffers"] == given["buffers"][1:]
    assert list(again["lenders"]) == [given["buffers"][1]["lender"]]
    assert len(rack.agents.keys) == 1


def test_what_ends_keys_says_of_which_owner(rack):
    for _ in range(2):
        given = rack.borrow(8)
        rack.lenders.give_back(str(uuid4()), given["allocation_uuid"], "h3")
        rack.settler.run()
    assert rack.agents.ended == [dict.fromkeys(range(4), 1)] * 2 + [dict.fromkeys(range(4), 2)] * 2


@pytest.fixture
def moving(rack):
    """A consumer has two buffers at h3, and is to have them at h4."""
    there = rack.borrow()
    rack.ledger.loans.acknowledge("ack-1", there["allocation_uuid"], "h3")
    rack.ledger.hosts.heartbeat(report("h4", 1, pools=[]))
    request = BorrowRequest("vm1", "h4", 2 * SIZE, guaranteed=True, source="h3")
    return rack, there["allocation_uuid"], request


def test_the_host_that_a_consumer_moves_to_gets_second_keys(moving):
    rack, there, request = moving
    here = rack.lenders.borrow("op-m", request, SIZE)
    assert all(item["handed"] for item in here["buffers"])
    assert set(rack.agents.shared) == set(rack.agents.keys)
    rack.settler.run()
    assert set(rack.agents.keys.values()) == {"h3"}, "none of both ends before one lets go"
    assert len(rack.agents.shared) == 2
    rack.lenders.give_back("op-r", there, "h3")
    rack.settler.run()
    assert (set(rack.agents.keys.values()), rack.agents.shared) == ({"h4"}, {}), "the former ones have ended"
    rack.lenders.give_back("op-s", here["allocation_uuid"], "h4")
    rack.settler.run()
    assert rack.states() == ["free"] * 8


def test_after_a_move_that_failed_the_second_keys_end(moving):
    rack, _, request = moving
    here = rack.lenders.borrow("op-m", request, SIZE)
    rack.lenders.give_back("op-s", here["allocation_uuid"], "h4")
    rack.settler.run()
    assert (set(rack.agents.keys.values()), rack.agents.shared) == ({"h3"}, {})


def test_a_lender_that_makes_no_second_key_leaves_all_as_it_was(moving):
    rack, _, request = moving
    rack.agents.refuse["h1"] = HostUnusable("of a former release")
    with pytest.raises(HostUnusable):
        rack.lenders.borrow("op-m", request, SIZE)
    assert not any(item.heir for item in rack.ledger.buffers.find())
    assert [item.host for item in rack.ledger.loans.allocations()] == ["h3"]
