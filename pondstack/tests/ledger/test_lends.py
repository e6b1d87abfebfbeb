"""What hosts are to lend, and which buffers may be borrowed, in the ledger, on all three databases."""

import pytest

from pondstack.domain.admission import LendStage
from pondstack.domain.errors import BufferShortage, Conflict, HostUnusable, OperationMismatch
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from tests.fixtures.ledgers import report

BUFFER, LIFE = 64, "22222222-2222-4222-8222-222222222222"


def begin(ledger, operation_id="op-1", mib=128, host="h1"):
    return ledger.lends.begin(operation_id, host, mib, LenderKind.ACTIVE)


def delegate(ledger, count=2, life=LIFE, sequence=1):
    offsets = {index: index * BUFFER for index in range(count)}
    ledger.buffers.delegate(Lender("h1", life, LenderKind.ACTIVE, BUFFER), sequence, offsets, admitted=False)


def test_a_lend_from_its_begin_to_its_end(ledger, reader) -> None:
    lend = begin(ledger)
    assert lend == begin(ledger), "a repetition finds it"
    assert ledger.lends.find() == [lend]
    lend = ledger.lends.step(lend, LendStage.LENDING)
    lend = ledger.lends.step(lend, LendStage.LENDING, "it waits")
    delegate(ledger)
    ledger.buffers.admit("h1", LIFE, [0])
    host = reader.host("h1")
    assert (host.lent_mib, host.admitted_mib) == (128, 64)
    assert host.lend == {**lend.progress(64), "reason": "it waits"}
    assert reader.lender("h1").operations == (host.lend,)
    assert ledger.lends.end(lend, 64, "the host keeps the rest")
    assert ledger.lends.find() == []
    assert begin(ledger) is None
    assert ledger.lends.ended("op-1") == (64, "the host keeps the rest")
    assert reader.host("h1").lend is None
    with pytest.raises(OperationMismatch):
        begin(ledger, mib=256)


def test_what_a_host_tells_of_its_part_is_not_the_end(ledger, reader) -> None:
    told = {"operation_id": "op-1", "verb": "lend", "state": "done", "mib": 128, "done_mib": 128, "reason": ""}
    other = {**told, "operation_id": "op-0"}
    begin(ledger)
    delegate(ledger)
    ledger.hosts.heartbeat(report("h1", sequence=2, lending={"lendable_mib": 0, "operations": [other, told]}))
    states = [(item["operation_id"], item["state"]) for item in reader.lender("h1").operations]
    assert states == [("op-0", "done"), ("op-1", "pending")]


def test_one_at_a_time_and_another_wish_only_while_it_waits(ledger) -> None:
    first = begin(ledger)
    second = begin(ledger, "op-2", 64)
    assert ledger.lends.find() == [second]
    assert ledger.lends.ended("op-1") == (0, "lend op-2 came in its place")
    assert ledger.lends.step(first, LendStage.LENDING) is None, "it has ended"
    ledger.lends.step(second, LendStage.LENDING)
    with pytest.raises(Conflict, match="op-2 is under way"):
        begin(ledger, "op-3")
    assert not ledger.lends.end(first, 128), "another one is there"
    assert not ledger.lends.end(second, 128), "it waits no more"
    assert len(ledger.lends.find()) == 1


def test_a_fenced_or_removed_host_is_to_lend_nothing(ledger) -> None:
    begin(ledger)
    ledger.failures.fence_host("h1", "it burns", force=True)
    assert ledger.lends.find() == []
    with pytest.raises(HostUnusable):
        begin(ledger, "op-2")


def test_a_removed_host_takes_its_wish_along(ledger) -> None:
    begin(ledger)
    ledger.removal._down = -1.0
    ledger.removal.remove_host("h1", "op-2")
    assert ledger.lends.find() == []


def test_nobody_borrows_what_is_not_admitted(ledger) -> None:
    delegate(ledger)
    with pytest.raises(BufferShortage):
        ledger.loans.borrow("op-1", BorrowRequest("vm", "h2", BUFFER, guaranteed=True), BUFFER)
    assert ledger.buffers.admit("h1", "another life", [0, 1]) == []
    assert ledger.buffers.admit("h1", LIFE, [1, 7]) == [1]
    assert ledger.buffers.admit("h1", LIFE, [1]) == []
    given = ledger.loans.borrow("op-2", BorrowRequest("vm", "h2", BUFFER, guaranteed=True), BUFFER)["buffers"]
    assert [item["index"] for item in given] == [1]
    delegate(ledger, sequence=2)
    assert [item.admitted for item in ledger.buffers.find("h1")] == [False, True], "another word changes nothing"


def test_what_is_not_admitted_goes_back_first(ledger) -> None:
    delegate(ledger, 3)
    ledger.buffers.admit("h1", LIFE, [0, 1])
    assert ledger.buffers.reclaim("op-1", "h1", BUFFER) == [2]


def test_a_new_life_is_not_admitted(ledger) -> None:
    delegate(ledger)
    ledger.buffers.admit("h1", LIFE, [0, 1])
    delegate(ledger, life="33333333-3333-4333-8333-333333333333", sequence=2)
    assert not any(item.admitted for item in ledger.buffers.find("h1"))
