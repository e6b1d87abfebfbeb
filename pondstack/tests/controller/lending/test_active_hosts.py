"""Hosts that are awake are asked to lend what a borrow lacks: who, for how much, and once."""

from types import SimpleNamespace
from uuid import uuid4

import oslo_messaging
import pytest

from pondstack.controller.lending.active_hosts import PATIENCE_SECONDS, SETTLED_SECONDS, ActiveHosts
from pondstack.controller.lending.endpoint import LendingEndpoint
from pondstack.controller.lending.lenders import Lenders
from pondstack.domain.admission import LendStage
from pondstack.domain.buffer_choice import Demand, Supply, to_ask, to_find
from pondstack.domain.errors import BufferShortage, Conflict, HostUnusable, Unavailable
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.states import SliceState
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.reader import MemoryReader
from tests.fixtures.memory.store import MemoryStore

SIZE, DOWN = 64, 20.0


class Agents:
    """`told`: what hosts were asked to lend in all, in MiB; `down`: those that do not answer."""

    def __init__(self):
        self.told, self.down, self.refuse, self.busy = {}, set(), set(), set()
        self.meanwhile, self.orders = lambda: None, 0

    def lend(self, host, *, mib, kind, **_said):
        if host in self.down:
            raise oslo_messaging.MessagingTimeout(host)
        if host in self.refuse:
            raise HostUnusable("no transport")
        if host in self.busy:
            raise Conflict("lend op is under way on this host; wait for its end")
        self.orders += 1
        self.meanwhile()
        assert kind == "active"
        self.told[host] = mib

    def export(self, host, *, indexes, incarnation, **_said):
        assert host in self.told
        return {"incarnation": incarnation, "ticket": {}, "keys": {str(index): {} for index in indexes}}


class AwakeRack:
    """Host h9 borrows; h1, h2 and h3 have room for 4, 2 and 1 buffers."""

    def __init__(self, **values):
        store = MemoryStore()
        self.ledger = MemoryLedger(store, take_over(store))
        self.reader, self.agents, self.now = MemoryReader(store, DOWN), Agents(), 0.0
        self.rooms = {"h1": 4, "h2": 2, "h3": 1, "h9": 9}
        self.sequence = 0
        for host in self.rooms:
            self.say(host)
        self.hosts = ActiveHosts(self.ledger, self.agents, self.reader.rack, DOWN, clock=lambda: self.now, **values)

    def say(self, host, **lending):
        self.sequence += 1
        told = {"incarnation": "", "kind": "active", "buffer_mib": SIZE, "buffers": [], "answers": True}
        told |= {"lendable_mib": self.rooms[host] * SIZE + 1, "operations": [], **lending}
        self.ledger.hosts.heartbeat(report(host, self.sequence, pools=[], lending=told, borrowed={"lenders": []}))

    def lends(self, host, count, kind=LenderKind.ACTIVE):
        self.sequence += 1
        life, offsets = str(uuid4()), {index: index * SIZE for index in range(count)}
        self.ledger.buffers.delegate(Lender(host, life, kind, SIZE), self.sequence, offsets)

    def ask(self, count):
        return self.hosts.ask_for("h9", count, SIZE)

    def endpoint(self, hosts=True):
        return LendingEndpoint(
            ledger=self.ledger,
            reader=self.reader,
            lenders=Lenders(self.ledger, self.agents, lambda: None),
            agents=self.agents,
            gate=SimpleNamespace(),
            active_hosts=lambda: self.hosts if hosts else None,
        )

    def borrow(self, count, *, guaranteed=True, hosts=True, host="h9", endpoint=None):
        request = {"consumer_uuid": "vm", "host": host, "remote_mib": count * SIZE, "guaranteed": guaranteed}
        asked = endpoint or self.endpoint(hosts)
        return LendingEndpoint.borrow.__wrapped__(asked, {}, operation_id=str(uuid4()), **request)


@pytest.fixture
def rack():
    return AwakeRack()


def test_who_has_most_left_is_asked_first():
    assert to_ask({"a": 3, "b": 1, "c": 3}, 4) == {"a": 2, "c": 2}
    assert to_ask({"a": 1, "b": 1}, 9) == {"a": 1, "b": 1}
    assert to_ask({"a": 1, "b": -2}, 0) == to_ask({}, 3) == {}


def test_what_is_missing_is_asked_for_once(rack):
    assert rack.ask(4) == 4
    assert rack.agents.told == {"h1": 3 * SIZE, "h2": SIZE}
    assert rack.ask(4) == 4, "it is on its way"
    assert rack.agents.told == {"h1": 3 * SIZE, "h2": SIZE}
    assert rack.ask(5) == 5
    assert rack.agents.told == {"h1": 3 * SIZE, "h2": SIZE, "h3": SIZE}


def test_of_what_is_not_guaranteed_a_part_is_asked_for(rack):
    assert rack.ask(8) == 7
    assert rack.agents.told == {"h1": 4 * SIZE, "h2": 2 * SIZE, "h3": SIZE}


def test_what_a_host_lends_already_counts(rack):
    rack.lends("h1", 3)
    rack.ask(1)
    assert rack.agents.told == {"h1": 4 * SIZE}


@pytest.mark.parametrize(
    "told",
    [
        {"answers": False},
        {"buffer_mib": 32},
        {"lendable_mib": None},
        {"operations": [{"operation_id": "op", "verb": "lend", "state": "pending", "mib": 1, "done_mib": 0}]},
    ],
)
def test_who_cannot_lend_now_is_not_asked(rack, told):
    rack.say("h1", **told)
    rack.ask(2)
    assert sorted(rack.agents.told) in (["h2"], ["h2", "h3"])


def test_who_sleeps_is_fenced_or_disabled_is_not_asked(rack):
    rack.lends("h1", 1, LenderKind.ZOMBIE)
    rack.ledger.failures.fence_host("h2", "burnt", force=True)
    rack.ask(9)
    assert rack.agents.told == {"h3": SIZE}


def test_who_borrows_is_not_asked(rack):
    held = {"lender": "h2", "incarnation": "life", "allocations": {"loan": [0]}, "leaving": {}, "released": []}
    told = {"incarnation": "", "kind": "active", "buffer_mib": SIZE, "buffers": [], "lendable_mib": 4 * SIZE}
    rack.ledger.hosts.heartbeat(report("h1", 99, pools=[], lending=told, borrowed={"lenders": [held]}))
    rack.ask(9)
    assert rack.agents.told == {"h2": 2 * SIZE, "h3": SIZE}


def test_a_host_that_does_not_answer_gives_nothing(rack):
    rack.agents.down, rack.agents.refuse = {"h1"}, {"h2"}
    assert rack.ask(7) == 1
    assert rack.agents.told == {"h3": SIZE}


def test_who_is_being_asked_is_not_asked_by_another_borrow(rack):
    answers = []

    def meanwhile():
        rack.agents.meanwhile = lambda: None
        answers.append(rack.ask(2))

    rack.agents.meanwhile = meanwhile
    assert rack.ask(2) == 2
    assert answers == [2], "it is on its way"
    assert (rack.agents.told, rack.agents.orders) == ({"h1": 2 * SIZE}, 1)


def test_a_host_that_is_at_it_already_counts(rack):
    """The answer to the first order was lost."""
    rack.agents.busy = {"h1"}
    assert rack.ask(2) == 2
    assert rack.hosts.lends() == {"h1": 2 * SIZE}


def test_what_a_host_is_at_counts_whoever_asked_it(rack):
    """A former leader did."""
    rack.say(
        "h1", operations=[{"operation_id": "op", "verb": "lend", "state": "pending", "mib": 2 * SIZE, "done_mib": 0}]
    )
    with pytest.raises(Unavailable, match="asked to lend: repeat it"):
        rack.borrow(4)
    assert rack.agents.told == {"h2": 2 * SIZE}
    rack.say("h1", operations=[{"operation_id": "op", "verb": "reclaim", "state": "pending", "mib": 9, "done_mib": 0}])
    assert rack.hosts.lends() == {"h2": 2 * SIZE}


def test_who_has_reported_since_lends_no_more_than_it_does(rack):
    rack.ask(2)
    rack.lends("h1", 1)
    rack.rooms["h1"] = 0
    rack.now = SETTLED_SECONDS + 1
    at_it = {"operation_id": "op", "verb": "lend", "state": "pending", "mib": 2 * SIZE, "done_mib": SIZE}
    rack.say("h1", operations=[at_it])
    assert rack.hosts.room("h9", SIZE)[0] == 1, "it is at it still"
    rack.say("h1")
    assert rack.hosts.room("h9", SIZE) == (0, {"h1": 0, "h2": 2, "h3": 1})


def test_what_does_not_come_is_asked_for_again(rack):
    rack.ask(4)
    rack.agents.told.clear()
    rack.now = PATIENCE_SECONDS
    rack.ask(4)
    assert rack.agents.told == {"h1": 3 * SIZE, "h2": SIZE}


def test_with_placement_the_memory_is_claimed_first():
    woken = []
    memory = SimpleNamespace(capacity_mib=1.5 * 10 * SIZE, used_mib=1.5 * 8 * SIZE, ratio=1.5)
    claims = SimpleNamespace(memory=lambda host: None if host == "h2" else memory)
    rack = AwakeRack(claims=claims, admit=lambda: woken.append(1))
    assert rack.ask(3) == 3
    assert {lend.host: lend.mib for lend in rack.ledger.lends.find()} == {"h1": 2 * SIZE, "h3": SIZE}
    assert (rack.agents.told, len(woken)) == ({}, 2)
    [first, _] = rack.ledger.lends.find()
    rack.ledger.lends.step(first, LendStage.WAITING, "instances leave 0 MiB")
    assert rack.ask(3) == 3
    assert [lend.host for lend in rack.ledger.lends.find()] == ["h3"], "nobody waits for what instances have got"


def test_two_borrows_end_what_waits(monkeypatch):
    """A borrow looks while another one ends a lend that instances have overtaken: both go on, and it is ended once."""
    rack = AwakeRack(admit=lambda: None)
    assert rack.ask(1) == 1
    [waiting] = rack.ledger.lends.find()
    rack.ledger.lends.step(waiting, LendStage.WAITING, "instances leave 0 MiB")
    rack.rooms["h1"] = 0
    rack.say("h1")
    end, ended = rack.ledger.lends.end, []

    def meanwhile(*lend):
        if not ended:
            ended.append(None)
            ended.append(rack.hosts.room("h9", SIZE)[1])
        return end(*lend)

    monkeypatch.setattr(rack.ledger.lends, "end", meanwhile)
    rack.hosts.room("h9", SIZE)
    assert ended == [None, {"h2": 2, "h3": 1}]
    assert rack.ledger.lends.find() == []
    assert rack.ask(1) == 1
    assert [lend.host for lend in rack.ledger.lends.find()] == ["h2"]


def test_a_guaranteed_borrow_is_repeated_until_it_is_there(rack):
    with pytest.raises(BufferShortage):
        rack.borrow(2, hosts=False)
    assert rack.agents.told == {}
    with pytest.raises(Unavailable, match="asked to lend: repeat it"):
        rack.borrow(2)
    assert rack.agents.told == {"h1": 2 * SIZE}
    rack.lends("h1", 2)
    assert len(rack.borrow(2)["buffers"]) == 2


def test_what_nobody_has_is_a_shortage(rack):
    with pytest.raises(BufferShortage):
        rack.borrow(8)
    assert rack.agents.told == {}


def test_swap_takes_what_is_there_and_has_the_rest_asked_for(rack):
    rack.lends("h2", 1)
    rack.agents.told["h2"] = SIZE
    assert len(rack.borrow(3, guaranteed=False)["buffers"]) == 1
    assert rack.agents.told == {"h1": 2 * SIZE, "h2": SIZE}


class SharedRack(AwakeRack):
    """Host h1 lends two buffers, to which h2 swaps; h1 and h3 have room for one more each."""

    def __init__(self):
        super().__init__()
        self.rooms = {"h1": 1, "h2": 0, "h3": 1, "h9": 0}
        for host in self.rooms:
            self.say(host)
        self.lends("h1", 2)
        self.agents.told["h1"] = 2 * SIZE
        self.swapped = self.borrow(2, guaranteed=False, host="h2", hosts=False)
        opened = [(item["incarnation"], item["index"]) for item in self.swapped["buffers"]]
        self.ledger.loans.acknowledge(str(uuid4()), self.swapped["allocation_uuid"], "h2", opened)

    def releasing(self):
        return [item.host for item in self.ledger.buffers.find() if item.state is SliceState.RELEASING]


def test_active_hosts_and_best_effort_loans_meet_one_shortage_together():
    rack = SharedRack()
    with pytest.raises(Unavailable, match=r"\. Hosts that have room are asked to lend and best-effort loans give way"):
        rack.borrow(4)
    assert rack.agents.told == {"h1": 3 * SIZE, "h3": SIZE}, "hosts first"
    assert rack.releasing() == ["h2", "h2"], "loans for the rest"
    with pytest.raises(Unavailable):
        rack.borrow(4)
    assert rack.agents.told == {"h1": 3 * SIZE, "h3": SIZE}, "it is on its way: nobody is asked again"


def test_loans_give_no_more_than_hosts_lack():
    rack = SharedRack()
    with pytest.raises(Unavailable):
        rack.borrow(3)
    assert (rack.agents.told, rack.releasing()) == ({"h1": 3 * SIZE, "h3": SIZE}, ["h2"])


def test_of_more_than_both_have_nobody_is_asked():
    rack = SharedRack()
    with pytest.raises(BufferShortage):
        rack.borrow(5)
    assert (rack.agents.told, rack.releasing()) == ({"h1": 2 * SIZE}, [])


def test_loans_give_what_a_host_that_does_not_answer_would_have_lent():
    rack = SharedRack()
    rack.agents.down = {"h1", "h3"}
    with pytest.raises(Unavailable, match=r"\. Best-effort loans give way: repeat it"):
        rack.borrow(2)
    assert rack.releasing() == ["h2", "h2"]
    with pytest.raises(BufferShortage):
        rack.borrow(4)


def test_what_comes_back_while_it_is_looked_for_is_no_shortage(monkeypatch):
    rack = SharedRack()
    monkeypatch.setattr(Lenders, "missing", lambda *_asked: 0)
    with pytest.raises(Unavailable, match="has come meanwhile: repeat it"):
        rack.borrow(4)
    assert (rack.agents.told, rack.releasing()) == ({"h1": 2 * SIZE}, [])


def test_what_becomes_free_is_kept_for_who_waits_for_hosts_too():
    rack = SharedRack()
    endpoint = rack.endpoint()
    with pytest.raises(Unavailable):
        rack.borrow(1, endpoint=endpoint)
    rack.lends("h3", 1)
    assert rack.borrow(1, guaranteed=False, host="h2", endpoint=endpoint)["buffers"] == []


def test_what_is_on_its_way_counts_before_anybody_is_asked():
    rooms = {"a": 3, "b": 1}
    assert to_find(4, Supply(rooms=rooms)) == Demand({"a": 3, "b": 1}, 0)
    assert to_find(4, Supply(able=2, rooms={"b": 2})) == Demand({"b": 2}, 2)
    assert to_find(5, Supply(able=2, rooms={"b": 2})) is None
    assert to_find(4, Supply(returning=2, able=5, coming=1, rooms=rooms)) == Demand({"a": 1}, 2)
    assert to_find(2, Supply(returning=2, able=5, rooms=rooms)) == Demand({}, 2)
    assert to_find(2, Supply(returning=1, coming=2)) == Demand({}, 0)
    assert to_find(3, Supply(able=3)) == Demand({}, 3)
