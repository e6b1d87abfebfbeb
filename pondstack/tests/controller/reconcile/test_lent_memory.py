"""Lent memory in the reconciler's rounds and in audits: real ledger, real Placement, agents as plain objects."""

from uuid import uuid4

import pytest

from pondstack.clients.placement import Inventory
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.lending.inventory import PROVIDER, LendingInventory
from pondstack.domain.errors import Unavailable, Unclaimed
from pondstack.domain.lending import REMOTE_CLASS
from pondstack.tests.controller.conftest import audit
from pondstack.tests.controller.lent_rack import LIFE, SIZE


def codes(answer):
    return {item["code"] for item in answer["findings"]}


# Admission


def test_a_guaranteed_loan_is_given_against_its_claim_only(lent):
    consumer = str(uuid4())
    with pytest.raises(Unclaimed, match="claims 0 MiB"):
        lent.borrow(consumer, 2)
    assert lent.states() == ["free"] * 4
    lent.claim(consumer, 2 * SIZE)
    with pytest.raises(Unclaimed):
        lent.borrow(consumer, 3)
    assert len(lent.borrow(consumer, 2, "op")["buffers"]) == 2


def test_all_loans_of_a_consumer_are_covered_by_its_claim_together(lent):
    consumer = str(uuid4())
    lent.claim(consumer, 2 * SIZE)
    uuid = lent.borrow(consumer, 1)["allocation_uuid"]
    with pytest.raises(Unclaimed, match="has 64 MiB"):
        lent.borrow(consumer, 2)
    lent.borrow(consumer, 1)
    lent.ledger.loans.ask_back(uuid, "for the test")
    assert lent.borrow(consumer, 1)["buffers"], "what is on its way back does not count"


def test_the_same_operation_gets_the_same_answer_when_the_claim_is_gone(lent):
    consumer = str(uuid4())
    lent.claim(consumer, SIZE)
    given = lent.borrow(consumer, 1, "op")
    lent.drop(consumer)
    assert lent.borrow(consumer, 1, "op") == given


def test_a_claim_on_another_host_admits_nothing_here(lent):
    consumer = str(uuid4())
    lent.claim(consumer, SIZE, host="h1")
    with pytest.raises(Unclaimed):
        lent.borrow(consumer, 1)


def test_swap_is_given_without_a_claim(lent):
    assert len(lent.borrow(str(uuid4()), 2, guaranteed=False)["buffers"]) == 2


def test_nothing_is_admitted_while_placement_does_not_answer(lent, monkeypatch):
    consumer = str(uuid4())
    lent.claim(consumer, SIZE)
    monkeypatch.setattr(lent.placement, "held_by", lambda _consumer: (_ for _ in ()).throw(Unavailable("down")))
    with pytest.raises(Unavailable):
        lent.borrow(consumer, 1)


# Claims that are gone


def test_a_loan_is_asked_back_once_its_claim_is_gone_for_the_grace(lent):
    consumer, uuid = lent.lend()
    assert lent.placed.reconcile(unclaimed_grace_seconds=0.0) == []
    lent.drop(consumer)
    assert lent.placed.reconcile(unclaimed_grace_seconds=30.0) == []
    assert lent.placed.reader.rack(lent=True).lent.loans[uuid].unclaimed_seconds is not None
    assert lent.placed.reconcile(unclaimed_grace_seconds=0.0) == ["loan_unclaimed"]
    assert lent.states() == ["releasing", "releasing", "free", "free"]


def test_a_claim_that_is_back_starts_the_grace_anew(lent):
    consumer, uuid = lent.lend()
    lent.drop(consumer)
    lent.placed.reconcile(unclaimed_grace_seconds=30.0)
    lent.claim(consumer, 2 * SIZE)
    assert lent.placed.reconcile(unclaimed_grace_seconds=0.0) == []
    assert lent.placed.reader.rack(lent=True).lent.loans[uuid].unclaimed_seconds is None


def test_nothing_is_unclaimed_while_placement_has_no_provider(lent, monkeypatch):
    consumer, _ = lent.lend()
    lent.drop(consumer)
    monkeypatch.setattr(RemoteClaims, "by_consumer", lambda _self: None)
    assert lent.placed.reconcile(unclaimed_grace_seconds=0.0) == []


def test_a_notification_notes_at_once_that_a_loan_is_unclaimed(lent):
    consumer, uuid = lent.lend()
    lent.drop(consumer)
    lent.placed.reconciler.hint(consumer)
    assert lent.placed.reader.rack(lent=True).lent.loans[uuid].unclaimed_seconds is not None


# Swap disks that Nova forgot


def forget_disk(lent, uuid=None):
    """Have h2 report a swap disk, with a best-effort loan, whose instance is gone."""
    consumer = str(uuid4())
    uuid = lent.borrow(consumer, 2, guaranteed=False)["allocation_uuid"]
    lent.ledger.loans.acknowledge(str(uuid4()), uuid, "h2")
    lent.books({uuid: [0, 1]})
    lent.placed.agents["h2"].borrowed["swap_disks"] = {consumer: 2 * SIZE}
    lent.report([0, 2, "h2", 1], [2, 2, "", 0])
    lent.placed.beat()
    return consumer, uuid


def test_a_swap_disk_that_nova_forgot_comes_back(lent):
    consumer, uuid = forget_disk(lent)
    assert lent.placed.reconcile(unclaimed_grace_seconds=30.0) == []
    assert lent.placed.reader.rack(lent=True).lent.loans[uuid].unclaimed_seconds is not None
    assert "swap_disk_unclaimed" in codes(audit(lent.placed, unclaimed_grace_seconds=0.0))
    assert lent.placed.agents["h2"].borrowed["swap_disks"] == {consumer: 2 * SIZE}, "an audit changes nothing"
    assert lent.placed.reconcile(unclaimed_grace_seconds=0.0) == ["swap_disk_unclaimed"]
    assert lent.placed.agents["h2"].borrowed["swap_disks"] == {}
    assert lent.states() == ["releasing", "releasing", "free", "free"]
    assert lent.ledger.buffers.find("h1")[0].reason.startswith("unclaimed: h2 has it, of 128 MiB")


def test_one_that_is_claimed_stays(lent):
    consumer, _ = forget_disk(lent)
    lent.claim_mirror(consumer, 2 * SIZE)
    assert lent.placed.reconcile(unclaimed_grace_seconds=0.0) == []


def test_one_whose_instance_runs_keeps_what_it_borrowed(lent):
    forget_disk(lent)
    lent.placed.agents.refuse = {"h2"}
    assert lent.placed.reconcile(unclaimed_grace_seconds=0.0) == ["swap_disk_unclaimed"]
    assert lent.states() == ["online", "online", "free", "free"]


# Reports


def test_an_audit_finds_nothing_where_all_agree(lent):
    lent.lend()
    LendingInventory(lent.placement, lent.ledger).write()
    lent.placed.sync.write(lent.placed.reader.rack())
    assert audit(lent.placed)["findings"] == []


def test_what_a_lender_says_is_taken_for_its_word(lent):
    lent.report([0, 6, "", 0])
    lent.placed.beat()
    assert "lender_differs" in codes(audit(lent.placed))
    assert len(lent.states()) == 4, "an audit changes nothing"
    assert lent.placed.reconcile() == ["lender_differs"]
    assert lent.states() == ["free"] * 6
    assert lent.placed.reconcile() == []


def test_a_lender_that_lost_its_memory_without_a_word_loses_its_loans(lent):
    lent.lend()
    lent.placed.agents["h1"].lending |= {"incarnation": "", "buffers": []}
    lent.placed.beat()
    assert lent.placed.reconcile() == ["lender_differs"]
    assert lent.states() == ["quarantined", "quarantined"]


def test_keys_that_nobody_may_have_are_ended(lent):
    ledger, free = lent.ledger, lent.ledger.buffers.find("h1")[3:]
    ledger.database.write(lambda tx: ledger._store.buffers.mark(tx, free, {"generation": 1}))
    lent.report([0, 3, "", 0], [3, 1, "h2", 1])
    lent.placed.beat()
    assert lent.placed.reconcile() == ["key_left"]
    about = {"indexes": [3], "generations": {3: 1}, "incarnation": LIFE}
    assert lent.placed.agents["h1"].commands == [("revoke", about)]


def test_what_a_borrower_should_not_have_it_is_told_to_let_go_of(lent):
    lent.books({"loan-9": [2], "": [3]})
    lent.placed.beat()
    assert set(lent.placed.reconcile()) == {"conflicting_loan", "promise_left"}
    told = [(about["allocation_uuid"], about["indexes"]) for _, about in lent.placed.agents["h2"].commands]
    assert sorted(told) == [("", [3]), ("loan-9", [2])]


def test_a_loan_that_its_borrower_forgot_goes_back(lent):
    lent.lend()
    lent.books({})
    lent.placed.beat()
    assert lent.placed.reconcile() == ["loan_lost"]
    assert lent.states() == ["releasing", "releasing", "free", "free"]


def test_a_host_that_does_not_answer_is_not_judged_by_its_old_report(lent):
    lent.lend()
    lent.books({})
    lent.placed.beat("h2")
    lent.placed.agents["h2"].up = False
    assert lent.placed.reconcile() == ["loan_lost"]
    assert lent.states() == ["online", "online", "free", "free"]


def test_a_silent_agent_fails_no_other_repair(lent):
    lent.report([0, 3, "", 0], [3, 1, "h2", 0])
    lent.books({"loan-9": [2]})
    lent.placed.agents.refuse = {"h2"}
    actions = {item["code"]: item["action"] for item in audit(lent.placed, repair=True)["findings"]}
    assert actions["key_left"] == "done: have h1 end the keys"
    assert actions["conflicting_loan"].startswith("failed (have h2 let go of them): an agent does not answer")


def test_a_promotion_commands_no_agent(lent):
    lent.report([0, 3, "", 0], [3, 1, "h2", 0])
    lent.books({"loan-9": [2]})
    lent.placed.beat()
    agents = lent.placed.agents
    lent.placed.reconciler.reconcile_at_promotion(lambda host: agents.report(host, epoch=lent.ledger.epoch), 5.0)
    assert [agent.commands for agent in agents.values()] == [[], []]


def test_an_audit_sees_an_inventory_of_lent_memory_that_somebody_changed(lent):
    wrong = Inventory(640, 0, SIZE, SIZE, 640)
    lent.placement.set_inventory(PROVIDER, REMOTE_CLASS, wrong)
    answer = audit(lent.placed)
    assert ("inventory_differs", "lent memory") in [(item["code"], item["subject"]) for item in answer["findings"]]


def test_the_writer_of_that_inventory_looks_again_when_told_to(lent):
    inventory = LendingInventory(lent.placement, lent.ledger)
    inventory.write()
    lent.placement.set_inventory(PROVIDER, REMOTE_CLASS, Inventory(640, 0, SIZE, SIZE, 640))
    inventory.write()
    assert inventory.difference()
    inventory.forget()
    inventory.write()
    assert inventory.difference() is None
