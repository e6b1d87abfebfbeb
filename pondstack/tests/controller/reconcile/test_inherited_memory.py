"""Lent memory that is handed over to the host that its guest moves to, in the reconciler's rounds."""

from uuid import uuid4

import pytest

from pondstack.controller.lending.inventory import PROVIDER
from pondstack.domain.requests import BorrowRequest
from pondstack.tests.controller.conftest import FakeAgent
from pondstack.tests.controller.lent_rack import SIZE, books


def hand_over(lent):
    """Have a guest be about to move from h3 to h2, which has the keys; returns both loans."""
    consumer, loans = str(uuid4()), lent.ledger.loans
    lent.placed.agents["h3"] = FakeAgent("h3")
    lent.placed.agents["h3"].borrowed = {"lenders": []}
    lent.placed.beat()
    there = loans.borrow("op-1", BorrowRequest(consumer, "h3", 2 * SIZE, True), SIZE)["allocation_uuid"]
    loans.acknowledge("op-2", there, "h3")
    here = loans.borrow("op-3", BorrowRequest(consumer, "h2", 2 * SIZE, True, source="h3"), SIZE)["allocation_uuid"]
    mine = lent.ledger.buffers.find("h1")[:2]
    lent.ledger.database.write(lambda tx: lent.ledger._store.buffers.mark(tx, mine, {"changed_at": 0.0}))
    loans.acknowledge("op-4", here, "h2")
    lent.placed.agents["h3"].borrowed = {"lenders": [books({there: [0, 1]})]}
    lent.books({here: [0, 1]})
    lent.report([0, 2, "h3", 1], [2, 2, "", 0])
    lent.placed.beat()
    return there, here


def heirs(lent):
    return {(item.host, item.heir) for item in lent.ledger.buffers.find("h1")[:2]}


def test_a_borrower_lets_go_of_what_it_is_to_inherit_by_its_own_word(lent):
    """The migration is over, the guest is where it was, and the destination has not said so."""
    there, here = hand_over(lent)
    assert lent.placed.reconcile(unclaimed_grace_seconds=30.0) == []
    assert heirs(lent) == {("h3", here)}
    assert "loan_unclaimed" in lent.placed.reconcile(unclaimed_grace_seconds=0.0)
    assert ("give_back", here) in [(verb, told["allocation_uuid"]) for verb, told in lent.placed.agents["h2"].commands]
    assert heirs(lent) == {("h3", None)}
    assert [item.uuid for item in lent.ledger.loans.allocations()] == [there]


def test_what_a_borrower_forgot_that_it_is_to_inherit_stays_with_its_owner(lent):
    """Though not all of it: what it still has is handed over."""
    there, here = hand_over(lent)
    lent.books({here: [1]})
    lent.placed.beat()
    assert lent.placed.reconcile(unclaimed_grace_seconds=30.0) == ["loan_lost"]
    assert [item.heir for item in lent.ledger.buffers.find("h1")[:2]] == [None, here]
    assert sorted(item.uuid for item in lent.ledger.loans.allocations()) == sorted([there, here])


def test_a_report_of_before_its_acknowledgement_tells_nothing_of_an_heir(lent):
    hand_over(lent)
    ages = [aged.age_seconds for aged in lent.placed.reader.rack(lent=True).lent.buffers[:2]]
    assert all(age < 3600.0 for age in ages)


@pytest.mark.parametrize("undone", [False, True], ids=["begins", "is undone"])
def test_a_migration_that_changes_claims_while_they_are_read_unclaims_nothing(lent, monkeypatch, undone):
    """The claims change right after lent memory was read, or right after its borrower was."""
    (consumer, uuid), aside, read = lent.lend(), str(uuid4()), lent.placement.allocations_of

    def begin():
        lent.claim(aside, 2 * SIZE)
        lent.drop(consumer)
        lent.claim(consumer, 2 * SIZE, "h1")

    def undo():
        lent.drop(consumer)
        lent.claim(consumer, 2 * SIZE)
        lent.drop(aside)

    if undone:
        begin()
    left = [undo if undone else begin]
    before = lent.placement.provider_by_name("h2") if undone else PROVIDER

    def read_and_change(provider):
        found = read(provider)
        if provider == before and left:
            left.pop()()
        return found

    monkeypatch.setattr(lent.placement, "allocations_of", read_and_change)
    lent.placed.reconcile(unclaimed_grace_seconds=30.0)
    assert not left
    assert lent.placed.reader.rack(lent=True).lent.loans[uuid].unclaimed_seconds is None
