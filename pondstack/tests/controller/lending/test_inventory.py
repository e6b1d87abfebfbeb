"""Lent memory in a real Placement: one provider, what can be claimed of it, and whom it is shared with."""

from dataclasses import replace

import pytest

from pondstack.clients.placement import Inventory
from pondstack.controller.lending.inventory import AGGREGATE, PROVIDER, LendingInventory, wanted
from pondstack.domain.lending import REMOTE_CLASS, Buffer, Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import SliceState
from pondstack.tests.controller.conftest import register_host
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

SIZE, LIFE = 64, "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def ledger(placement):
    store = MemoryStore()
    made = MemoryLedger(store, take_over(store))
    for host in ("h1", "h2", "h3"):
        made.hosts.heartbeat(report(host, pools=[], borrowed=None if host == "h3" else {}))
        register_host(placement, host)
    return made


def lend(ledger, count, life=LIFE):
    ledger.buffers.delegate(
        Lender("h1", life, LenderKind.ACTIVE, SIZE), 1, {index: index * SIZE for index in range(count)}
    )


def shared(placement, host):
    uuid = placement.provider_by_name(host)
    return AGGREGATE in placement._get(f"/resource_providers/{uuid}/aggregates")["aggregates"]


def test_what_can_be_claimed_and_by_whom(ledger, placement) -> None:
    inventory = LendingInventory(placement, ledger)
    inventory.write()
    assert placement.inventory(PROVIDER, REMOTE_CLASS) is None, "nothing is lent, so there is no provider"
    lend(ledger, 4)
    inventory.write()
    assert placement.inventory(PROVIDER, REMOTE_CLASS) == Inventory(256, 0, SIZE, SIZE, 256)
    assert [shared(placement, host) for host in ("h1", "h2", "h3")] == [True, True, False]
    uuid = ledger.loans.borrow("op-1", BorrowRequest("vm1", "h2", SIZE, guaranteed=True), SIZE)["allocation_uuid"]
    ledger.loans.borrow("op-2", BorrowRequest("swap", "h2", SIZE, guaranteed=False), SIZE)
    inventory.write()
    assert placement.inventory(PROVIDER, REMOTE_CLASS).reserved == SIZE, "swap has no claim"
    ledger.loans.give_back("op-3", uuid, "h2")
    ledger.buffers.reclaim("op-4", "h1", SIZE)
    inventory.write()
    assert placement.inventory(PROVIDER, REMOTE_CLASS).reserved == 3 * SIZE
    ledger.hosts.heartbeat(report("h2", sequence=2, pools=[], borrowed=None))
    lend(ledger, 0, life="")
    inventory.write()
    assert placement.inventory(PROVIDER, REMOTE_CLASS).reserved == 1
    assert [shared(placement, host) for host in ("h1", "h2", "h3")] == [True, False, False]


def test_what_of_sleeping_lenders_is_not_for_all_is_reserved() -> None:
    def record(*items: Buffer) -> int:
        found = wanted([Buffer("h1", LIFE, 9), *items], ())
        assert found is not None
        return found.reserved // SIZE

    asleep = Buffer("h1", LIFE, 0, kind=LenderKind.ZOMBIE)
    assert record(asleep) == 1, "nobody has a key of it"
    assert record(replace(asleep, escrowed=True)) == 0
    assert record(replace(asleep, escrowed=True, promised_to="h2")) == 1, "h2 alone can have it"
    used = {"state": SliceState.ONLINE, "host": "h2", "allocation_uuid": "loan"}
    assert record(replace(asleep, escrowed=True, promised_to="h2", **used)) == 0, "a claim counts it"
    assert record(Buffer("h1", LIFE, 0, escrowed=True)) == 1, "awake, and its keys have not ended"


def test_a_host_that_nova_removed_is_joined_again_when_it_is_back(ledger, placement) -> None:
    inventory = LendingInventory(placement, ledger)
    lend(ledger, 4)
    inventory.write()
    assert shared(placement, "h2")
    assert placement.remove_provider(placement.provider_by_name("h2"))
    ledger.hosts.heartbeat(report("h2", sequence=2, pools=[], borrowed=None))
    inventory.write()
    register_host(placement, "h2")
    ledger.hosts.heartbeat(report("h2", sequence=3, pools=[], borrowed={}))
    inventory.write()
    assert shared(placement, "h2")


def test_a_new_leader_finds_what_the_former_one_wrote(ledger, placement) -> None:
    lend(ledger, 2)
    LendingInventory(placement, ledger).write()
    LendingInventory(placement, ledger).write()
    assert placement.inventory(PROVIDER, REMOTE_CLASS).total == 2 * SIZE


def test_a_new_leader_takes_back_what_the_former_one_offered(ledger, placement) -> None:
    lend(ledger, 2)
    LendingInventory(placement, ledger).write()
    lend(ledger, 0, life="")
    LendingInventory(placement, ledger).write()
    assert placement.inventory(PROVIDER, REMOTE_CLASS).reserved == 1


def test_an_offer_that_an_audit_finds_after_the_last_lender_left_is_taken_back(ledger, placement) -> None:
    inventory = LendingInventory(placement, ledger)
    lend(ledger, 2)
    inventory.write()
    lend(ledger, 0, life="")
    assert inventory.difference()
    inventory.forget()
    inventory.write()
    assert inventory.difference() is None


def test_a_rack_that_lends_nothing_asks_placement_once(ledger, placement, monkeypatch) -> None:
    asked = []
    look = placement.inventory
    monkeypatch.setattr(placement, "inventory", lambda *record: asked.append(record) or look(*record))
    inventory = LendingInventory(placement, ledger)
    inventory.write()
    inventory.write()
    assert len(asked) == 1
