"""A host lends all that it can spare by a plan, and takes back what it lent by that, not what it had lent before."""

import pytest

from pondstack.controller.lending.host_lends import HostLends
from pondstack.domain.admission import LendStage
from pondstack.domain.errors import Conflict
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

from .test_admission import LIFE, SIZE, Lender, LenderKind


class Agents:
    lendable_mib = 200

    def __init__(self):
        self.reclaimed = []

    def get_lending(self, _host):
        return {"buffer_mib": SIZE, "lendable_mib": self.lendable_mib}

    def reclaim(self, host, *, operation_id, mib, **_said):
        self.reclaimed.append((host, operation_id, mib))
        return {"state": "pending"}


class World:
    """Host h1, which lends two buffers already."""

    def __init__(self):
        store = MemoryStore()
        self.ledger = MemoryLedger(store, take_over(store))
        self.ledger.hosts.heartbeat(report("h1", pools=[]))
        self.agents, self.admitted, self.words = Agents(), 0, 0
        self.lends = HostLends(self.ledger, self.agents, self._admit)
        self.delegates(2)

    def _admit(self):
        self.admitted += 1

    def delegates(self, count):
        self.words += 1
        offsets = {index: index * SIZE for index in range(count)}
        self.ledger.buffers.delegate(Lender("h1", LIFE, LenderKind.ACTIVE, SIZE), self.words, offsets, admitted=True)


@pytest.fixture
def world():
    return World()


def test_it_lends_whole_buffers_beside_what_it_lends(world):
    world.lends.begin("h1", "op-1")
    lend = world.ledger.lends.of_host("h1")
    assert (lend.mib, lend.kind, world.admitted) == (5 * SIZE, LenderKind.ACTIVE, 1)
    assert world.lends.waits("h1", "op-1") == ""
    assert world.lends.waits("h1", "op-2") is None
    assert world.lends.ended("op-1") is None
    world.ledger.lends.end(lend, 5 * SIZE)
    assert (world.lends.ended("op-1"), world.lends.waits("h1", "op-1")) == ((5 * SIZE, ""), None)


def test_what_it_had_lent_before_stays_lent(world):
    world.lends.begin("h1", "op-1")
    world.delegates(5)
    world.ledger.lends.end(world.ledger.lends.of_host("h1"), 5 * SIZE)
    assert world.lends.take_back("h1", "op-1", "back")
    assert world.agents.reclaimed == [("h1", "back", 3 * SIZE)]
    world.delegates(2)
    assert not world.lends.take_back("h1", "op-1", "back"), "an operator has done it meanwhile"


def test_nothing_is_taken_back_by_a_lend_that_nobody_knows(world):
    assert not world.lends.take_back("h1", "op-forgotten", "back")
    assert world.agents.reclaimed == []


def test_a_host_without_memory_to_spare_is_refused(world):
    world.delegates(0)
    world.agents.lendable_mib = SIZE - 1
    with pytest.raises(Conflict, match="no memory to spare"):
        world.lends.begin("h1", "op-1")
    assert world.ledger.lends.of_host("h1") is None


def test_one_that_waits_for_more_waits_no_more(world):
    world.lends.begin("h1", "op-1")
    world.delegates(5)
    world.ledger.lends.end(world.ledger.lends.of_host("h1"), 5 * SIZE)
    world.ledger.lends.begin("op-2", "h1", 6 * SIZE, LenderKind.ACTIVE)
    assert world.ledger.lends.of_host("h1").stage is LendStage.WAITING
    world.lends.take_back("h1", "op-1", "back")
    assert world.ledger.lends.of_host("h1") is None
