"""The leader and lenders that sleep: keys for all that are linked, and to whom they are disclosed."""

from dataclasses import replace

import pytest

from pondstack.controller.lending.sealing import KEY_BYTES, EscrowSealer
from pondstack.domain.errors import AgentUnavailable, BufferShortage, Unavailable
from pondstack.domain.lending import LenderKind
from pondstack.domain.requests import BorrowRequest

from .sleeping_rack import BORROWERS, LIFE, SIZE, SleepingRack


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
