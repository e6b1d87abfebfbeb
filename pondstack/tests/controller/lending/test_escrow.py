"""The leader and lenders that sleep: keys for all that are linked, and to whom they are disclosed."""

from dataclasses import replace
from uuid import uuid4

import oslo_messaging
import pytest

from pondstack.controller.lending.lenders import BufferSettler, Lenders
from pondstack.controller.lending.sealing import KEY_BYTES, EscrowSealer
from pondstack.domain.errors import AgentUnavailable, BufferShortage, Conflict, HostUnusable, InUse, Unavailable
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

SIZE, LIFE = 64, str(uuid4())
SEALER = EscrowSealer({"now": bytes(range(KEY_BYTES))})
BORROWERS = ("h2", "h3")


class Agents:
    """One lender, h1, and its borrowers. `keys`: live ones by buffer and borrower; `links`: who is connected to it."""

    def __init__(self):
        self.keys, self.links, self.ended = {}, set(), {}
        self.asleep, self.down, self.former, self.lost = False, set(), set(), []
        self.connects = []

    def escrow(self, host, *, indexes, borrower, incarnation, generations, **_said):
        self._asked(host)
        if host in self.former:
            raise HostUnusable("upgrade it")
        for index in indexes:
            if self.ended.get(index, 0) >= generations[index]:
                raise Conflict("late")
            self.keys[index, borrower] = generations[index]
        if "escrow" in self.lost:
            self.lost.remove("escrow")
            raise oslo_messaging.MessagingTimeout(host)
        keys = {str(index): {"number": index, "token": f"{borrower} {index}"} for index in indexes}
        return {"incarnation": incarnation, "ticket": {"borrower": borrower}, "keys": keys}

    def connect(self, host, *, ticket, **_said):
        self._asked(host)
        if host in self.former:
            raise HostUnusable("upgrade it")
        if self.asleep:
            raise Unavailable("the lender sleeps")
        assert ticket == {"borrower": host}
        self.connects.append(host)
        self.links.add(host)
        return True

    def export(self, host, *, indexes, borrower, incarnation, generations, **_said):
        self._asked(host)
        for index in indexes:
            others = [each for each in self.keys if each[0] == index and each[1] != borrower]
            if (index, borrower) not in self.keys and others:
                raise InUse("another borrower's key lives")
            self.keys = {each: value for each, value in self.keys.items() if each not in others}
            self.keys[index, borrower] = generations[index]
        return {"incarnation": incarnation, "ticket": {}, "keys": {str(index): "new" for index in indexes}}

    def revoke(self, host, *, indexes, generations, **_said):
        self._asked(host)
        for index in indexes:
            self.ended[index] = max(self.ended.get(index, 0), generations[index])
        self.keys = {each: at for each, at in self.keys.items() if each[0] not in indexes}
        return list(indexes)

    def give_back(self, host, *, indexes, **_said):
        self._asked(host)
        return list(indexes)

    def _asked(self, host):
        if host in self.down or (host == "h1" and self.asleep):
            raise oslo_messaging.MessagingTimeout(host)


class SleepingRack:
    """Host h1 lends four buffers; h2 and h3 borrow."""

    def __init__(self):
        self.store = MemoryStore()
        self.agents, self.sequence = Agents(), 1
        self.lead()
        for host in ("h1", *BORROWERS):
            self.say(host)
        self.lend(LenderKind.ACTIVE)

    def lead(self, sealer=SEALER):
        self.ledger = MemoryLedger(self.store, take_over(self.store))
        self.lenders = Lenders(self.ledger, self.agents, lambda: None, sealer)
        self.settler = BufferSettler(self.ledger, self.agents, sealer=sealer)

    def say(self, host):
        self.sequence += 1
        links = [["h1", LIFE]] if host in self.agents.links else []
        borrowed = {"lenders": []} | ({} if host in self.agents.former else {"links": links})
        self.ledger.hosts.heartbeat(report(host, self.sequence, pools=[], borrowed=borrowed))

    def lend(self, kind, admitted=True, count=4):
        self.sequence += 1
        offsets = {index: index * SIZE for index in range(count)}
        self.ledger.buffers.delegate(Lender("h1", LIFE, kind, SIZE), self.sequence, offsets, admitted=admitted)

    def sleep(self):
        """Have all keys made, then sleep."""
        self.lend(LenderKind.ZOMBIE)
        for _ in range(2):
            self.settler.run()
            for host in BORROWERS:
                self.say(host)
        self.agents.asleep = True

    def wake(self):
        self.agents.asleep = False
        self.lend(LenderKind.ACTIVE)

    def borrow(self, host, count, operation=None):
        return self.lenders.borrow(operation or str(uuid4()), BorrowRequest("vm", host, count * SIZE, True), SIZE)

    def give_back(self, given, host):
        self.lenders.give_back(str(uuid4()), given["allocation_uuid"], host)

    def states(self):
        return [str(item.state) for item in self.ledger.buffers.find("h1")]

    def told(self):
        return [item.promised_to for item in self.ledger.buffers.find("h1")]


@pytest.fixture
def rack():
    return SleepingRack()


def test_one_of_two_borrowers_may_use_all_of_a_sleeper(rack):
    """It was half of it: each free buffer was promised to one host."""
    rack.sleep()
    given = rack.borrow("h3", 4)
    assert [item["index"] for item in given["buffers"]] == [0, 1, 2, 3]
    keys = given["lenders"]["h1"]["keys"]
    assert {index: key["token"] for index, key in keys.items()} == {str(index): f"h3 {index}" for index in range(4)}
    assert given["lenders"]["h1"]["ticket"] == {"borrower": "h3"}
    with pytest.raises(BufferShortage):
        rack.borrow("h2", 1)


def test_a_key_is_disclosed_at_allocation_only(rack):
    rack.sleep()
    assert len(rack.agents.keys) == 8
    rows = str(rack.store.tables.escrowed_keys)
    assert "token" not in rows
    rack.borrow("h3", 1)
    assert rack.ledger.escrow.disclosed("h2", LIFE, range(4)) == [], "another host is told nothing of it"
    assert rack.told() == ["h3", None, None, None]


def test_a_repetition_gets_the_same_keys(rack):
    rack.sleep()
    assert rack.borrow("h3", 2, "op-1") == rack.borrow("h3", 2, "op-1")


def test_the_next_leader_reads_what_a_former_one_has_sealed(rack):
    rack.sleep()
    rack.lead(EscrowSealer({"now": bytes(range(KEY_BYTES))}))
    assert rack.borrow("h2", 4)["lenders"]["h1"]["keys"]["3"] == {"number": 3, "token": "h2 3"}


def test_a_leader_without_the_sealing_key_gives_nothing_and_takes_nothing(rack):
    rack.sleep()
    for sealer in (None, EscrowSealer({"other": bytes(KEY_BYTES)})):
        rack.lead(sealer)
        with pytest.raises(BufferShortage):
            rack.borrow("h2", 1)
        rack.settler.run()
    rack.lead()
    assert rack.told() == [None] * 4
    assert len(rack.borrow("h2", 4)["buffers"]) == 4


def test_a_row_that_somebody_changed_costs_the_loan_and_no_more(rack):
    rack.sleep()
    for place, row in list(rack.store.tables.escrowed_keys.items()):
        if place[1:] == (0, "h2"):
            rack.store.tables.escrowed_keys[place] = replace(row, sealed=row.sealed[:-8] + "AAAAAAA=")
    with pytest.raises(Unavailable, match="does not open"):
        rack.borrow("h2", 2)
    rack.settler.run()
    assert (rack.states(), rack.told()) == (["free"] * 4, ["h2", "h2", None, None]), "a key may have been told"
    assert len(rack.borrow("h3", 2)["buffers"]) == 2


def test_keys_are_sealed_anew_with_the_first_sealing_key(rack):
    rack.sleep()
    new = {"new": bytes(KEY_BYTES)}
    rack.lead(EscrowSealer(new | {"now": bytes(range(KEY_BYTES))}))
    for _ in range(2):
        rack.settler.run()
    rack.lead(EscrowSealer(new))
    assert len(rack.borrow("h2", 4)["buffers"]) == 4


def test_without_a_sealing_key_there_is_no_escrow(rack):
    rack.lead(None)
    rack.sleep()
    assert (rack.agents.keys, rack.agents.connects) == ({}, [])
    with pytest.raises(BufferShortage):
        rack.borrow("h2", 1)
    rack.wake()
    assert len(rack.borrow("h2", 4)["buffers"]) == 4


def test_who_connects_after_the_lender_slept_cannot_use_it(rack):
    rack.agents.down = {"h3"}
    rack.sleep()
    rack.agents.down = set()
    rack.settler.run()
    rack.say("h3")
    with pytest.raises(BufferShortage):
        rack.borrow("h3", 1)
    assert len(rack.borrow("h2", 4)["buffers"]) == 4


def test_after_a_crash_of_its_data_plane_a_host_cannot_use_sleepers(rack):
    rack.sleep()
    given = rack.borrow("h3", 2)
    rack.ledger.loans.acknowledge("op-1", given["allocation_uuid"], "h3")
    rack.agents.links.clear()
    rack.say("h3")
    rack.give_back(given, "h3")
    with pytest.raises(BufferShortage):
        rack.borrow("h3", 1)
    with pytest.raises(BufferShortage):
        rack.borrow("h2", 3)
    rack.wake()
    rack.settler.run()
    assert (rack.told(), rack.agents.keys) == ([None] * 4, {})
    assert len(rack.borrow("h3", 4)["buffers"]) == 4


def test_what_its_borrower_gave_back_is_its_own_until_the_lender_is_awake(rack):
    rack.sleep()
    given = rack.borrow("h3", 3)
    rack.give_back(given, "h3")
    rack.settler.run()
    assert (rack.states(), rack.told()) == (["free"] * 4, ["h3"] * 3 + [None])
    with pytest.raises(BufferShortage):
        rack.borrow("h2", 2)
    again = rack.borrow("h3", 3)
    assert again["lenders"]["h1"]["keys"] == given["lenders"]["h1"]["keys"]
    rack.give_back(again, "h3")
    rack.wake()
    rack.settler.run()
    assert rack.agents.ended == {0: 3, 1: 3, 2: 3, 3: 1}, "up to the generation of its last owner"
    assert len(rack.borrow("h2", 4)["buffers"]) == 4


def test_awake_again_a_lender_ends_all_keys_but_those_of_owners(rack):
    rack.sleep()
    given = rack.borrow("h3", 1)
    rack.ledger.loans.acknowledge("op-1", given["allocation_uuid"], "h3")
    rack.wake()
    with pytest.raises(BufferShortage):
        rack.borrow("h2", 1)
    rack.settler.run()
    assert list(rack.agents.keys) == [(0, "h3")]
    assert rack.agents.ended[0] < rack.ledger.buffers.find("h1")[0].generation, "with its last key its content goes"
    assert (rack.states(), rack.told()) == (["online", "free", "free", "free"], [None] * 4)
    assert len(rack.borrow("h2", 3)["buffers"]) == 3


def test_an_owner_whose_lender_wakes_gets_its_key_once_more(rack):
    """The leader died before it answered, and the lender woke before the borrower asked again."""
    rack.sleep()
    rack.borrow("h3", 1, "op-1")
    rack.wake()
    assert rack.borrow("h3", 1, "op-1")["lenders"]["h1"]["keys"]["0"]["token"] == "h3 0"
    rack.settler.run()
    assert rack.borrow("h3", 1, "op-1")["lenders"]["h1"]["keys"] == {"0": "new"}


def test_keys_whose_making_was_not_heard_of_are_asked_for_again(rack):
    rack.agents.lost = ["escrow", "escrow"]
    rack.sleep()
    assert len(rack.ledger.escrow.of_lender(LIFE)) == 8
    assert {item.generation for item in rack.ledger.buffers.find("h1")} == {1}


def test_keys_that_nobody_heard_of_die_with_the_others(rack):
    """The leader died after they were made, before they were in escrow; the lender did not sleep after all."""
    rack.lend(LenderKind.ZOMBIE)
    rack.settler.run()
    rack.agents.keys[1, "h9"] = 1
    rack.lend(LenderKind.ACTIVE)
    rack.lead()
    rack.settler.run()
    assert rack.agents.keys == {}
    assert len(rack.borrow("h3", 4)["buffers"]) == 4


def test_a_lender_that_wakes_ends_no_key_of_the_host_that_a_guest_moves_to(rack):
    rack.sleep()
    there = rack.borrow("h2", 2)
    rack.ledger.loans.acknowledge("ack-2", there["allocation_uuid"], "h2")
    here = rack.lenders.borrow("op-m", BorrowRequest("vm", "h3", 2 * SIZE, True, source="h2"), SIZE)
    assert all(item["handed"] for item in here["buffers"])
    rack.ledger.loans.acknowledge("ack-3", here["allocation_uuid"], "h3")
    rack.wake()
    rack.settler.run()
    assert {each[1] for each in rack.agents.keys} == {"h2", "h3"}, "both read until one lets go"
    rack.give_back(there, "h2")
    for _ in range(2):
        rack.settler.run()
    assert {each[1] for each in rack.agents.keys} == {"h3"}
    assert not any(item.escrowed or item.shared for item in rack.ledger.buffers.find("h1"))


def test_who_comes_later_gets_keys_too(rack):
    rack.agents.down = {"h3"}
    rack.lend(LenderKind.ZOMBIE)
    rack.settler.run()
    rack.agents.down = set()
    rack.sleep()
    assert len(rack.borrow("h3", 4)["buffers"]) == 4


def test_former_agents_take_no_part(rack):
    rack.agents.former = {"h2"}
    rack.say("h2")
    rack.sleep()
    assert rack.agents.connects == ["h3"]
    rack.agents.former = {"h1"}
    with pytest.raises(BufferShortage):
        rack.borrow("h2", 1)
    assert len(rack.borrow("h3", 4)["buffers"]) == 4


def test_a_former_lender_makes_no_keys_and_nobody_waits_for_it(rack):
    rack.agents.former = {"h1"}
    rack.sleep()
    assert rack.agents.keys == {}
    assert {item.escrowed for item in rack.ledger.buffers.find("h1")} == {False}


def test_nothing_is_begun_for_nobody(rack):
    """Placement would offer what nobody can use."""
    rack.agents.down = set(BORROWERS)
    rack.sleep()
    assert {item.escrowed for item in rack.ledger.buffers.find("h1")} == {False}


def test_what_is_not_admitted_gets_no_keys(rack):
    rack.lend(LenderKind.ZOMBIE, admitted=False, count=5)
    for _ in range(2):
        rack.settler.run()
    assert {index for index, _ in rack.agents.keys} == {0, 1, 2, 3}


def test_a_silent_lender_is_not_asked(rack):
    rack.lend(LenderKind.ZOMBIE)
    rack.ledger.escrow._down = -1.0
    rack.agents._asked = pytest.fail
    rack.settler.run()


def test_a_lender_that_does_not_end_a_key_keeps_its_buffer(rack):
    rack.sleep()
    rack.wake()
    rack.agents.down = {"h1"}
    rack.settler.run()
    with pytest.raises(BufferShortage):
        rack.borrow("h2", 1)
    rack.agents.down = set()
    rack.settler.run()
    assert len(rack.borrow("h2", 4)["buffers"]) == 4


def test_what_the_former_release_promised_is_asked_for_before_its_key_ends(rack):
    rack.lend(LenderKind.ZOMBIE)
    item = rack.ledger.buffers.find("h1")[0]
    tables = rack.ledger._store.buffers
    rack.store.write(lambda tx: tables.mark(tx, [item], {"promised_to": "h3"}))
    rack.agents.keys[0, "h3"] = 0
    rack.lend(LenderKind.ACTIVE)
    rack.agents.down = {"h3"}
    rack.settler.run()
    assert (rack.told()[0], list(rack.agents.keys)) == ("h3", [(0, "h3")])
    rack.ledger.failures.fence_host("h3", "it burned", force=True)
    rack.settler.run()
    assert (rack.told()[0], rack.agents.keys) == (None, {})


def test_a_woken_lender_that_is_away_gives_no_new_key(rack):
    rack.wake()
    rack.agents.down = {"h1"}
    with pytest.raises(AgentUnavailable):
        rack.borrow("h3", 1)
