"""Best-effort loans give way to guaranteed ones: which buffers, in which order, and what is never taken."""

from types import SimpleNamespace
from uuid import uuid4

import oslo_messaging
import pytest

from pondstack.controller.lending import inventory
from pondstack.controller.lending.best_effort import PATIENCE_SECONDS
from pondstack.controller.lending.endpoint import LendingEndpoint
from pondstack.controller.lending.lenders import BufferSettler, Lenders
from pondstack.domain import buffer_choice
from pondstack.domain.errors import BufferShortage, Unavailable
from pondstack.domain.lending import Buffer, Lender, LenderKind
from pondstack.domain.states import SliceState
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.reader import MemoryReader
from tests.fixtures.memory.store import MemoryStore

SIZE, DOWN = 64, 20.0


class Agents:
    """`holds_on`: borrowers that have not let go of anything yet; `silent`: hosts that do not answer."""

    def __init__(self):
        self.holds_on, self.silent, self.revoked = set(), set(), []

    def export(self, _host, *, indexes, incarnation, **_said):
        return {"incarnation": incarnation, "ticket": {}, "keys": {str(index): {} for index in indexes}}

    def give_back(self, host, *, indexes, **_said):
        if host in self.silent:
            raise oslo_messaging.MessagingTimeout(host)
        return [] if host in self.holds_on else list(indexes)

    def revoke(self, host, *, indexes, **_said):
        if host in self.silent:
            raise oslo_messaging.MessagingTimeout(host)
        self.revoked.append((host, sorted(indexes)))
        return list(indexes)


class SwappingRack:
    """Host h1 lends six buffers; h7 and h8 swap to them, h9 is to have guaranteed memory."""

    def __init__(self):
        self.store = MemoryStore()
        self.ledger = MemoryLedger(self.store, take_over(self.store))
        self.agents, self.now, self.counted, self.sequence = Agents(), 0.0, 0, 0
        for host in ("h1", "h7", "h8", "h9"):
            self.beat(host)
        offsets = {index: index * SIZE for index in range(6)}
        self.ledger.buffers.delegate(Lender("h1", str(uuid4()), LenderKind.ACTIVE, SIZE), 1, offsets)
        self.endpoint = LendingEndpoint(
            ledger=self.ledger,
            reader=MemoryReader(self.store, DOWN),
            lenders=Lenders(self.ledger, self.agents, lambda: None),
            agents=self.agents,
            gate=SimpleNamespace(),
            gave_way=self.count,
            clock=lambda: self.now,
        )
        self.settler = BufferSettler(self.ledger, self.agents)
        self.swap("h7", 4)
        self.swap("h8", 2)

    def beat(self, host):
        self.sequence += 1
        self.ledger.hosts.heartbeat(report(host, self.sequence, pools=[], borrowed={"lenders": []}))

    def count(self, buffers):
        self.counted += buffers

    def borrow(self, host, count, operation="", *, guaranteed=True):
        request = {"consumer_uuid": f"vm-{host}", "host": host, "remote_mib": count * SIZE, "guaranteed": guaranteed}
        borrow = LendingEndpoint.borrow.__wrapped__
        given = borrow(self.endpoint, {}, operation_id=operation or str(uuid4()), **request)
        opened = [(item["incarnation"], item["index"]) for item in given["buffers"]]
        if opened:
            self.ledger.loans.acknowledge(str(uuid4()), given["allocation_uuid"], host, opened)
        return len(opened)

    def swap(self, host, count):
        return self.borrow(host, count, guaranteed=False)

    def settle(self):
        """Have borrowers let go, then lenders end the keys."""
        for _ in range(2):
            self.settler.run()

    def waits(self, count, operation="op"):
        with pytest.raises(Unavailable, match="Best-effort loans give way: repeat it"):
            self.borrow("h9", count, operation)

    def has(self, state=SliceState.ONLINE):
        """Count the buffers of each host in a state."""
        found = {}
        for item in self.ledger.buffers.find():
            if item.state is state:
                found[item.host] = found.get(item.host, 0) + 1
        return found


@pytest.fixture
def rack():
    return SwappingRack()


def test_a_guaranteed_loan_gets_what_best_effort_ones_let_go_of(rack):
    """Whoever has most gives first; nothing is given before its borrower let go and its key is dead."""
    rack.agents.holds_on = {"h7"}
    rack.waits(3)
    assert (rack.has(SliceState.RELEASING), rack.counted) == ({"h7": 3}, 3)
    rack.settle()
    rack.waits(3)
    assert rack.counted == 3, "what is on its way is not asked for again"
    rack.agents.holds_on = set()
    rack.settle()
    assert rack.agents.revoked
    assert rack.borrow("h9", 3, "op") == 3
    assert rack.has() == {"h7": 1, "h8": 2, "h9": 3}


def test_who_swaps_does_not_take_it_back_while_somebody_waits(rack):
    rack.waits(2)
    rack.settle()
    assert rack.swap("h7", 2) == 0
    assert rack.borrow("h9", 2, "op") == 2
    rack.waits(2, "another")
    rack.settle()
    rack.now += PATIENCE_SECONDS
    assert rack.swap("h7", 2) == 2, "it does not come again"


def test_more_than_there_is_takes_nothing(rack):
    with pytest.raises(BufferShortage):
        rack.borrow("h9", 7)
    assert (rack.has(), rack.counted) == ({"h7": 4, "h8": 2}, 0)


def test_guaranteed_loans_give_nothing(rack):
    rack.waits(6)
    rack.settle()
    assert rack.borrow("h9", 6, "op") == 6
    with pytest.raises(BufferShortage):
        rack.borrow("h8", 1)


def test_a_silent_borrower_keeps_what_it_has(rack, monkeypatch):
    """Also one that falls silent after it was asked: others are asked then."""
    silent = {"h8"}
    monkeypatch.setattr(rack.ledger._store.buffers, "silent", lambda _tx, _seconds: silent, raising=True)
    with pytest.raises(BufferShortage):
        rack.borrow("h9", 5)
    rack.agents.holds_on = {"h7", "h8"}
    rack.waits(1)
    assert rack.has(SliceState.RELEASING) == {"h7": 1}
    silent.clear()
    silent.add("h7")
    rack.waits(1)
    assert rack.has(SliceState.RELEASING) == {"h7": 1, "h8": 1}


def test_the_keys_of_a_lender_that_sleeps_are_not_taken():
    online = {"state": SliceState.ONLINE, "host": "h7", "allocation_uuid": "loan"}
    item = Buffer("h1", "life", 0, **online)
    assert buffer_choice.gives_way(item, ())
    for values in (
        {"kind": LenderKind.ZOMBIE},
        {"kind": LenderKind.ZOMBIE, "promised_to": "h7", "escrowed": True},
        {"promised_to": "h7"},
        {"leaving": True},
        {"admitted": False},
    ):
        assert not buffer_choice.gives_way(Buffer("h1", "life", 0, **online, **values), ()), values
    assert not buffer_choice.gives_way(item, {"h1"})
    assert not buffer_choice.gives_way(item, {"h7"})


def test_placement_offers_what_gives_way(rack):
    items, swap = rack.ledger.buffers.find(), [each.uuid for each in rack.ledger.loans.allocations()]
    assert inventory.wanted(items, swap).reserved == 6 * SIZE
    assert inventory.wanted(items, swap, ["h8"]).reserved == 4 * SIZE, "h7 is silent"
    assert inventory.wanted(items, swap, ["h7", "h8"]).reserved == 0
