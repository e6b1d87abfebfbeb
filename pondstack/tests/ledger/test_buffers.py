"""Memory that hosts lend each other, in the ledger, on all three databases."""

from uuid import uuid4

import pytest

from pondstack.domain import errors
from pondstack.domain.causes import Cause
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import SliceState
from tests.fixtures.escrow import fill_escrow
from tests.fixtures.ledgers import report

BUFFER, LIFE = 64, "22222222-2222-4222-8222-222222222222"


def request(count=2, host="h2", **values):
    return BorrowRequest(str(uuid4()), host, count * BUFFER, **{"guaranteed": True, **values})


@pytest.fixture
def lent(ledger):
    """Host h1 lends four buffers."""
    assert lend(ledger) == (4, 0)
    return ledger


def lend(ledger, host="h1", life=LIFE, count=4, kind=LenderKind.ACTIVE, sequence=1, indexes=None):
    offsets = {index: index * BUFFER for index in (range(count) if indexes is None else indexes)}
    return ledger.buffers.delegate(Lender(host, life, kind, BUFFER), sequence, offsets)


def states(ledger, host="h1"):
    return [str(item.state) for item in ledger.buffers.find(host)]


def indexes(effect):
    return [item["index"] for item in effect["buffers"]]


def test_a_loan_from_lending_to_having_it_back(lent):
    effect = lent.loans.borrow("op-1", request(), BUFFER)
    uuid = effect["allocation_uuid"]
    assert indexes(effect) == [0, 1]
    assert {item["lender"] for item in effect["buffers"]} == {"h1"}
    assert states(lent) == ["assigning", "assigning", "free", "free"]
    lent.loans.acknowledge("op-1", uuid, "h2")
    assert states(lent) == ["online", "online", "free", "free"]
    assert lent.loans.give_back("op-2", uuid, "h2") == ["h1"]
    assert states(lent) == ["sanitizing", "sanitizing", "free", "free"]
    assert lent.loans.allocations() == []
    assert lent.buffers.sanitized("h1", LIFE, [0, 1]) == 2
    assert lent.buffers.reclaim("op-3", "h1", 4 * BUFFER) == [0, 1, 2, 3]
    assert lend(lent, count=0) == (0, 0)
    assert states(lent) == []


def test_operations_happen_once(lent):
    wanted = request()
    first = lent.loans.borrow("op-1", wanted, BUFFER)
    assert lent.loans.borrow("op-1", wanted, BUFFER) == first
    assert states(lent).count("assigning") == 2
    with pytest.raises(errors.OperationMismatch):
        lent.loans.borrow("op-1", request(), BUFFER)
    lent.loans.give_back("op-2", first["allocation_uuid"], "h2")
    with pytest.raises(errors.Conflict, match="was released"):
        lent.loans.borrow("op-1", wanted, BUFFER)


def test_the_next_owner_has_the_next_generation(lent):
    first = lent.loans.borrow("op-1", request(1), BUFFER)
    lent.loans.give_back("op-2", first["allocation_uuid"], "h2")
    lent.buffers.sanitized("h1", LIFE, [0])
    second = lent.loans.borrow("op-3", request(1), BUFFER)
    assert [first["buffers"][0]["generation"], second["buffers"][0]["generation"]] == [1, 2]
    assert indexes(second) == [0]


def test_guaranteed_is_all_or_nothing_and_swap_what_there_is(lent):
    with pytest.raises(errors.BufferShortage):
        lent.loans.borrow("op-1", request(5), BUFFER)
    assert states(lent) == ["free"] * 4
    assert indexes(lent.loans.borrow("op-2", request(5, guaranteed=False), BUFFER)) == [0, 1, 2, 3]
    nothing = lent.loans.borrow("op-3", request(1, guaranteed=False), BUFFER)
    assert nothing["buffers"] == []
    assert len(lent.loans.allocations()) == 1


@pytest.mark.parametrize("mib", [0, -64, 65])
def test_only_whole_buffers(lent, mib):
    with pytest.raises(errors.NotAligned, match=f"{mib} MiB"):
        lent.loans.borrow("op-1", BorrowRequest("c", "h2", mib, guaranteed=True), BUFFER)


def test_what_a_host_wants_back_is_whole_buffers(lent):
    assert lent.buffers.reclaim("op-1", "h1", BUFFER + 1) == [0, 1]
    assert lent.buffers.reclaim("op-2", "h1", 0) == []


def test_nobody_borrows_of_itself_or_speaks_for_another(lent):
    with pytest.raises(errors.BufferShortage):
        lent.loans.borrow("op-1", request(host="h1"), BUFFER)
    with pytest.raises(errors.HostUnusable, match="unknown"):
        lent.loans.borrow("op-2", request(host="nobody"), BUFFER)
    uuid = lent.loans.borrow("op-3", request(), BUFFER)["allocation_uuid"]
    with pytest.raises(errors.Conflict, match="belongs to host h2"):
        lent.loans.give_back("op-4", uuid, "h1")
    with pytest.raises(errors.Conflict, match="belongs to host h2"):
        lent.loans.acknowledge("op-5", uuid, "h1")
    with pytest.raises(errors.NotFound):
        lent.loans.acknowledge("op-6", str(uuid4()), "h2")


def test_a_part_can_be_given_back(lent):
    uuid = lent.loans.borrow("op-1", request(3), BUFFER)["allocation_uuid"]
    assert lent.loans.give_back("op-2", uuid, "h2", [(LIFE, 1)]) == ["h1"]
    assert states(lent) == ["assigning", "sanitizing", "assigning", "free"]
    assert lent.loans.give_back("op-3", uuid, "h2", [(LIFE, 1)]) == []
    assert len(lent.loans.allocations()) == 1


def sleep(ledger, host="h1", life=LIFE, count=4, borrowers=("h2",)):
    """The host is about to sleep, and keys of all that is free are in escrow for these, who are linked to it."""
    lend(ledger, host=host, life=life, count=count, kind=LenderKind.ZOMBIE, sequence=2)
    for borrower in borrowers:
        ledger.hosts.heartbeat(report(borrower, borrowed={"links": [[host, life]]}))
    return fill_escrow(ledger, host, *borrowers)


def test_zombies_are_asked_before_active_hosts(lent):
    life = str(uuid4())
    sleep(lent, host="h2", life=life, count=2, borrowers=("h3",))
    given = lent.loans.borrow("op-1", request(3, host="h3"), BUFFER)["buffers"]
    assert [item["lender"] for item in given] == ["h2", "h2", "h1"]


def test_a_silent_active_lender_lends_nothing_new_and_a_zombie_may_be_silent(lent):
    lent.loans._down = -1  # whatever was heard is too long ago
    with pytest.raises(errors.BufferShortage):
        lent.loans.borrow("op-1", request(), BUFFER)
    sleep(lent)
    assert indexes(lent.loans.borrow("op-3", request(), BUFFER)) == [0, 1]


def test_a_fenced_lender_lends_nothing_new(lent):
    lent.failures.fence_host("h1", "burnt", force=True)
    with pytest.raises(errors.BufferShortage):
        lent.loans.borrow("op-1", request(), BUFFER)
    with pytest.raises(errors.HostUnusable, match="fenced"):
        lend(lent, count=6, sequence=3)


def test_reclaim_waits_for_borrowers_and_for_their_keys(lent):
    uuid = lent.loans.borrow("op-1", request(2), BUFFER)["allocation_uuid"]
    lent.loans.acknowledge("op-1", uuid, "h2")
    assert lent.buffers.reclaim("op-2", "h1", 3 * BUFFER) == [2, 3]
    assert states(lent) == ["releasing", "online", "free", "free"]
    assert [item.leaving for item in lent.buffers.find("h1")] == [True, False, True, True]
    with pytest.raises(errors.BufferShortage):
        lent.loans.borrow("op-3", request(1), BUFFER)
    lent.loans.give_back("op-4", uuid, "h2", [(LIFE, 0)])
    assert lent.buffers.reclaim("op-2", "h1", 3 * BUFFER) == [2, 3], "the key of the other one may live"
    lent.buffers.sanitized("h1", LIFE, [0])
    assert lent.buffers.reclaim("op-2", "h1", 3 * BUFFER) == [0, 2, 3]
    assert lend(lent, indexes=[1]) == (0, 0)
    assert states(lent) == ["online"]
    assert lent.buffers.reclaim("op-2", "h1", 3 * BUFFER) == []


def test_a_host_may_take_back_what_somebody_has(lent):
    """It revoked the keys on its own; the borrower goes on from its mirror."""
    uuid = lent.loans.borrow("op-1", request(2), BUFFER)["allocation_uuid"]
    assert lend(lent, indexes=[1, 2]) == (0, 1)
    assert states(lent) == ["quarantined", "assigning", "free"]
    assert lent.buffers.find("h1")[0].cause is Cause.LENDER_LOST
    assert lent.buffers.free_revoked("h1", LIFE, [0]) == 0, "no fence set it aside"
    assert lent.loans.give_back("op-2", uuid, "h2", [(LIFE, 0)]) == []
    assert states(lent) == ["assigning", "free"]


def test_late_word_of_a_lender_changes_nothing(lent):
    assert lend(lent, count=2, sequence=5) == (0, 0)
    assert lend(lent, count=4, sequence=4) == (0, 0)
    assert states(lent) == ["free"] * 2
    assert lend(lent, count=3, sequence=5) == (1, 0)


def test_a_new_life_of_a_lender_ends_the_loans_of_the_former(lent):
    uuid = lent.loans.borrow("op-1", request(1), BUFFER)["allocation_uuid"]
    gone = lent.loans.borrow("op-2", request(1), BUFFER)["allocation_uuid"]
    lent.loans.give_back("op-3", gone, "h2")
    assert states(lent) == ["assigning", "sanitizing", "free", "free"]
    assert lend(lent, life="", count=0) == (0, 1)
    [left] = lent.buffers.find("h1")
    assert (left.state, left.host, left.cause) == (SliceState.QUARANTINED, "h2", Cause.LENDER_LOST)
    new = str(uuid4())
    assert lend(lent, life=new, count=2) == (2, 0)
    assert lent.buffers.sanitized("h1", LIFE, [0]) == 0, "late word of the former life"
    assert indexes(lent.loans.borrow("op-4", request(2), BUFFER)) == [0, 1]
    assert lent.loans.give_back("op-5", uuid, "h2") == []
    assert [item.incarnation for item in lent.buffers.find("h1")] == [new, new]


def test_one_size_of_buffers_in_a_rack(lent):
    with pytest.raises(errors.BadRequest, match=r"\[lending\] buffer_mib"):
        lent.buffers.delegate(Lender("h1", LIFE, LenderKind.ACTIVE, 128), 2, {0: 0, 9: 0})


def test_a_former_leader_writes_nothing(lent):
    lent._transactions.epoch -= 1
    with pytest.raises(errors.NotLeader):
        lent.loans.borrow("op-1", request(), BUFFER)
    assert states(lent) == ["free"] * 4


def test_what_is_never_acknowledged_is_asked_back(lent):
    late = lent.loans.borrow("op-1", request(2), BUFFER)["allocation_uuid"]
    done = lent.loans.borrow("op-2", request(1), BUFFER)["allocation_uuid"]
    lent.loans.acknowledge("op-3", done, "h2")
    assert lent.loans.release_abandoned(3600.0) == 0
    assert states(lent) == ["assigning", "assigning", "online", "free"]
    assert lent.loans.release_abandoned(-1.0) == 2
    assert states(lent) == ["releasing", "releasing", "online", "free"]
    assert {item.allocation_uuid for item in lent.buffers.find("h1")} == {late, done, None}, "not on a time-out"
    with pytest.raises(errors.IllegalTransition, match="give the allocation back and borrow again"):
        lent.loans.acknowledge("op-4", late, "h2")
    lent.loans.give_back("op-5", late, "h2")
    lent.buffers.sanitized("h1", LIFE, [0, 1])
    assert states(lent) == ["free", "free", "online", "free"]


def test_of_a_part_that_is_on_its_way_back_nothing_is_acknowledged(lent):
    uuid = lent.loans.borrow("op-1", request(4), BUFFER)["allocation_uuid"]
    lent.buffers.reclaim("op-2", "h1", BUFFER)
    with pytest.raises(errors.IllegalTransition, match="buffer h1/0"):
        lent.loans.acknowledge("op-3", uuid, "h2")
    assert states(lent) == ["releasing", "assigning", "assigning", "assigning"]


def test_a_borrower_acknowledges_what_it_has_opened_or_nothing(lent):
    """A part that was asked back, and let go unopened, while its keys were on the way: its borrower must not use it."""
    effect = lent.loans.borrow("op-1", request(2), BUFFER)
    uuid, opened = effect["allocation_uuid"], [(item["incarnation"], item["index"]) for item in effect["buffers"]]
    lent.buffers.reclaim("op-2", "h1", 3 * BUFFER)
    lent.loans.give_back("op-3", uuid, "h2", opened[:1])
    assert states(lent)[:2] == ["sanitizing", "assigning"]
    with pytest.raises(errors.Conflict, match=r"buffers \[0\] were taken back"):
        lent.loans.acknowledge("op-4", uuid, "h2", opened)
    assert states(lent)[:2] == ["sanitizing", "assigning"]
    lent.loans.acknowledge("op-5", uuid, "h2", opened[1:])
    assert states(lent)[:2] == ["sanitizing", "online"]


@pytest.mark.parametrize("end", ["withdrawn", "lost", "fenced"])
def test_a_late_word_brings_nothing_back(lent, end):
    """The lender's newest number is remembered when it lends nothing any more."""
    if end == "fenced":
        lent.failures.fence_host("h1", "burnt", force=True)
        lent.hosts.heartbeat(report("h1", sequence=2))
        lent.failures.unfence_host("h1")
    else:
        lend(lent, count=0, sequence=2, life=LIFE if end == "withdrawn" else "")
    assert lent.buffers.find("h1") == []
    assert lend(lent) == (0, 0), "said before the end, heard after it"
    assert lent.buffers.find("h1") == []
    assert lend(lent, sequence=7, life=str(uuid4())) == (4, 0)


def test_a_loss_leaves_the_size_of_buffers(lent):
    """A host without a lender's process has no size to tell."""
    lent.loans.borrow("op-1", request(1), BUFFER)
    lent.buffers.delegate(Lender("h1", "", LenderKind.ACTIVE, 0), 2, {})
    assert [item.size_mib for item in lent.buffers.find("h1")] == [BUFFER]


def test_who_lends_nothing_is_told_how_to(ledger):
    with pytest.raises(errors.NotFound, match="openstack memory host delegate h1"):
        ledger.buffers.reclaim("op-1", "h1", BUFFER)


def test_a_former_lender_is_not_shown(lent, reader):
    uuid = lent.loans.borrow("op-1", request(1), BUFFER)["allocation_uuid"]
    lend(lent, life="", count=0, sequence=2)
    assert [item.incarnation for item in reader.lenders()] == [""], "a borrower has not let go yet"
    lent.loans.give_back("op-2", uuid, "h2")
    assert reader.lenders() == []


def test_a_former_lender_shows_what_is_not_back_and_then_nothing(lent, reader):
    uuid = lent.loans.borrow("op-1", request(1), BUFFER)["allocation_uuid"]
    lend(lent, life="", count=0, sequence=2)
    assert len(reader.buffers("h1")) == 1
    lent.loans.give_back("op-2", uuid, "h2")
    for look in (reader.lender, reader.buffers):
        with pytest.raises(errors.NotFound, match="openstack memory host delegate h1"):
            look("h1")


def test_what_an_earlier_reclaim_did_not_take_goes_back_with_the_next(lent):
    """Its host helped itself to other buffers when its deadline came, and ended that reclaim."""
    assert lent.buffers.reclaim("op-1", "h1", BUFFER) == [0]
    assert lend(lent, indexes=[0, 1, 2], sequence=2) == (0, 0)
    assert lent.buffers.reclaim("op-2", "h1", 2 * BUFFER) == [0, 1]
