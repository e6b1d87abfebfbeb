"""Buffers that a guest keeps when it moves: who owns them, whoever lets go first, and whatever dies in between."""

from uuid import uuid4

import pytest

from pondstack.db.connection.engine import Database
from pondstack.db.store import SQL
from pondstack.domain import errors
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from pondstack.ledger.ledger import Ledger
from tests.fixtures import lead
from tests.fixtures.escrow import fill_escrow
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore
from tests.fixtures.schema import migrate
from tests.fixtures.servers import NETWORK_DATABASES

BUFFER, LIFE, GUEST = 64, "22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"
LENT = 4


@pytest.fixture(params=["sqlite", *NETWORK_DATABASES, "memory"])
def ledger(request, tmp_path):
    """One on each of the databases, and the one that simulations have, with hosts that are linked to h1."""
    if request.param == "memory":
        store = MemoryStore()
        made = MemoryLedger(store, take_over(store))
    else:
        sqlite = request.param == "sqlite"
        url = migrate(tmp_path / "ledger.db") if sqlite else request.getfixturevalue(f"{request.param}_migrated_url")
        database = Database.from_url(url, retry_seconds=10)
        made = Ledger(database, lead(database, "test"), store=SQL)
    for host in ("h1", "h2", "h3"):
        links = {"lenders": [], "links": [["h1", LIFE]]}
        made.hosts.heartbeat(report(host, 1, pools=[], borrowed=links))
    yield made
    if request.param != "memory":
        database.dispose()


@pytest.fixture(params=LenderKind)
def lent(request, ledger):
    """Host h1 lends, awake or about to sleep; then its keys are in escrow for h2 and h3."""
    ledger.buffers.delegate(Lender("h1", LIFE, request.param, BUFFER), 1, {i: i * BUFFER for i in range(LENT)})
    if request.param is LenderKind.ZOMBIE:
        fill_escrow(ledger, "h1", "h2", "h3")
    return ledger


def borrow(ledger, host, count, source="", operation_id=None):
    wanted = BorrowRequest(GUEST, host, count * BUFFER, guaranteed=True, source=source)
    given = ledger.loans.borrow(operation_id or str(uuid4()), wanted, BUFFER)
    opened = [(item["incarnation"], item["index"]) for item in given["buffers"]]
    ledger.loans.acknowledge(str(uuid4()), given["allocation_uuid"], host, opened)
    return given["allocation_uuid"], [(item["index"], item.get("handed", False)) for item in given["buffers"]]


def give_back(ledger, uuid, host, *indexes):
    only = [(LIFE, index) for index in indexes] if indexes else None
    return ledger.loans.give_back(str(uuid4()), uuid, host, only)


def end_former_keys(ledger):
    """As the settler, once a lender that is awake has ended them."""
    items = ledger.buffers.find("h1")
    if items[0].kind is LenderKind.ACTIVE:
        ledger.escrow.end("h1", LIFE, {item.index: item.generation for item in items}, used=True)


def owners(ledger):
    return [(str(item.state), item.host, item.heir is not None) for item in ledger.buffers.find("h1")]


def test_the_destination_gets_what_the_guest_has(lent):
    borrow(lent, "h2", 3)
    _, told = borrow(lent, "h3", 3, "h2")
    assert told == [(0, True), (1, True), (2, True)]
    assert owners(lent) == [("online", "h2", True)] * 3 + [("free", None, False)], "nothing new was taken"


def test_the_switch_is_the_owners_release(lent):
    there, _ = borrow(lent, "h2", 3)
    here, _ = borrow(lent, "h3", 3, "h2")
    before = lent.buffers.find("h1")
    assert give_back(lent, there, "h2") == ["h1"], "its lender is to end the former key"
    after = lent.buffers.find("h1")
    assert owners(lent)[:3] == [("online", "h3", False)] * 3
    assert [item.generation for item in after[:3]] == [item.generation + 1 for item in before[:3]]
    assert [item.uuid for item in lent.loans.allocations()] == [here]
    assert all(item.shared for item in after[:3]), "until its lender has ended the former key"
    if after[0].kind is LenderKind.ZOMBIE:
        assert [item.promised_to for item in after[:3]] == ["h3"] * 3
        assert len(lent.escrow.disclosed("h3", LIFE, range(LENT))) == 3
        assert lent.escrow.disclosed("h2", LIFE, range(LENT)) == []


def test_some_at_a_time(lent):
    there, _ = borrow(lent, "h2", 2)
    here, _ = borrow(lent, "h3", 2, "h2")
    give_back(lent, there, "h2", 1)
    assert owners(lent)[:2] == [("online", "h2", True), ("online", "h3", False)]
    give_back(lent, there, "h2", 0)
    give_back(lent, there, "h2", 0)
    assert owners(lent)[:2] == [("online", "h3", False)] * 2
    give_back(lent, here, "h3")
    assert not lent.loans.allocations()
    assert {state for state, _, _ in owners(lent)} <= {"sanitizing", "free"}


def test_a_move_that_fails_leaves_all_with_the_source(lent):
    there, _ = borrow(lent, "h2", 3)
    here, _ = borrow(lent, "h3", 3, "h2")
    give_back(lent, here, "h3")
    assert owners(lent)[:3] == [("online", "h2", False)] * 3
    assert [item.uuid for item in lent.loans.allocations()] == [there]
    end_former_keys(lent)
    _, told = borrow(lent, "h3", 3, "h2")
    assert all(handed for _, handed in told), "it may move again"


def test_an_awake_lender_hands_over_what_only_its_owner_has_a_key_of(lent):
    """Else the call that ends the former keys could end the new ones, which nobody makes again."""
    there, _ = borrow(lent, "h2", 2)
    borrow(lent, "h3", 2, "h2")
    give_back(lent, there, "h2")
    asleep = lent.buffers.find("h1")[0].kind is LenderKind.ZOMBIE
    _, told = borrow(lent, "h2", 2, "h3")
    assert [handed for _, handed in told] == [asleep] * 2


@pytest.mark.parametrize("first", ["h2", "h3"])
def test_what_two_hosts_have_keys_of_is_nobodys(lent, first):
    """Of a sleeping lender: whichever of both lets go last could find what the guest wrote at the other one."""
    loans = {"h2": borrow(lent, "h2", 2)[0], "h3": borrow(lent, "h3", 2, "h2")[0]}
    for host in sorted(loans, key=lambda name: name != first):
        give_back(lent, loans[host], host)
    assert [state for state, _, _ in owners(lent)[:2]] == ["sanitizing"] * 2
    lent.buffers.sanitized("h1", LIFE, [0, 1])
    assert owners(lent)[:2] == [("free", None, False)] * 2


def test_a_source_that_is_fenced_in_the_middle(lent):
    borrow(lent, "h2", 2)
    borrow(lent, "h3", 2, "h2")
    lent.failures.fence_host("h2", "it burns", force=True)
    assert owners(lent)[:2] == [("online", "h3", False)] * 2, "nobody else gets what it had"


def test_a_destination_that_is_fenced_in_the_middle(lent):
    there, _ = borrow(lent, "h2", 2)
    borrow(lent, "h3", 2, "h2")
    lent.failures.fence_host("h3", "it burns", force=True)
    assert owners(lent)[:2] == [("online", "h2", False)] * 2
    give_back(lent, there, "h2")
    assert "h3" not in {host for _, host, _ in owners(lent)}


def test_a_lender_that_wants_it_back_gets_it_of_the_heir(lent):
    there, _ = borrow(lent, "h2", 2)
    borrow(lent, "h3", 2, "h2")
    lent.buffers.reclaim(str(uuid4()), "h1", LENT * BUFFER)
    assert owners(lent)[:2] == [("releasing", "h2", True)] * 2
    give_back(lent, there, "h2")
    assert owners(lent)[:2] == [("releasing", "h3", False)] * 2


def test_keys_that_were_not_made_leave_no_heir(lent):
    borrow(lent, "h2", 2)
    given = lent.loans.borrow(
        str(uuid4()), BorrowRequest(GUEST, "h3", 2 * BUFFER, guaranteed=True, source="h2"), BUFFER
    )
    lent.loans.release_unacknowledged(given["allocation_uuid"], "no keys")
    assert owners(lent)[:2] == [("online", "h2", False)] * 2
    with pytest.raises(errors.NotFound):
        lent.loans.acknowledge(str(uuid4()), given["allocation_uuid"], "h3", [(LIFE, 0)])


def test_what_another_attempt_has_acknowledged_stays(lent):
    """The call was made twice, and the slower one gets no keys: the host reads by those of the faster one."""
    there, _ = borrow(lent, "h2", 2)
    here, _ = borrow(lent, "h3", 2, "h2")
    lent.loans.release_unacknowledged(here, "no keys")
    assert owners(lent)[:2] == [("online", "h2", True)] * 2
    give_back(lent, there, "h2")
    assert owners(lent)[:2] == [("online", "h3", False)] * 2


def test_what_is_refused_ends_the_heirs_key_by_a_newer_call_only(lent):
    borrow(lent, "h2", 2)
    here, _ = borrow(lent, "h3", 2, "h2")
    before = lent.buffers.find("h1")
    give_back(lent, here, "h3")
    awake = before[0].kind is LenderKind.ACTIVE
    assert [item.generation for item in lent.buffers.find("h1")[:2]] == [item.generation + awake for item in before[:2]]


def test_a_loan_that_nobody_acknowledged_inherits_nothing(lent):
    borrow(lent, "h2", 2)
    wanted = BorrowRequest(GUEST, "h3", 2 * BUFFER, guaranteed=True, source="h2")
    lent.loans.borrow(str(uuid4()), wanted, BUFFER)
    lent.loans.release_abandoned(3600.0)
    assert owners(lent)[:2] == [("online", "h2", True)] * 2
    lent.loans.release_abandoned(-1.0)
    assert owners(lent)[:2] == [("online", "h2", False)] * 2
    assert len(lent.loans.allocations()) == 1


def test_an_acknowledged_one_inherits_however_long_a_move_takes(lent):
    borrow(lent, "h2", 2)
    borrow(lent, "h3", 2, "h2")
    lent.loans.release_abandoned(-1.0)
    assert owners(lent)[:2] == [("online", "h2", True)] * 2


def test_why_the_owner_let_go_is_not_why_the_heir_is_asked(lent):
    there, _ = borrow(lent, "h2", 2)
    borrow(lent, "h3", 2, "h2")
    lent.loans.ask_back(there, "unclaimed: nobody claims it for 60 s")
    lent.buffers.reclaim(str(uuid4()), "h1", BUFFER * (LENT - 1))
    give_back(lent, there, "h2")
    assert {(str(item.state), item.reason) for item in lent.buffers.find("h1") if item.host == "h3"} == {
        ("online", ""),
        ("releasing", "lender h1 wants it back"),
    }


def test_a_repetition_gets_the_same(lent):
    there, _ = borrow(lent, "h2", 2)
    operation = str(uuid4())
    first = borrow(lent, "h3", 2, "h2", operation)
    assert borrow(lent, "h3", 2, "h2", operation) == first
    give_back(lent, there, "h2")
    assert borrow(lent, "h3", 2, "h2", operation) == first, "also after the switch"


def test_a_guest_that_moves_lacks_nothing_that_it_keeps(lent):
    borrow(lent, "h2", 3)
    wanted = BorrowRequest(GUEST, "h3", 5 * BUFFER, guaranteed=True, source="h2")
    assert lent.loans.missing(wanted, BUFFER) == 1, "three are handed over, one is free"
    other = BorrowRequest(str(uuid4()), "h3", 5 * BUFFER, guaranteed=True)
    assert lent.loans.missing(other, BUFFER) == 4


def test_another_consumers_buffers_are_not_handed_over(lent):
    other = BorrowRequest(str(uuid4()), "h2", 2 * BUFFER, guaranteed=True)
    given = lent.loans.borrow(str(uuid4()), other, BUFFER)
    lent.loans.acknowledge(str(uuid4()), given["allocation_uuid"], "h2")
    assert borrow(lent, "h3", 2, "h2")[1] == [(2, False), (3, False)]


def test_a_lender_hands_nothing_over_to_itself(lent):
    borrow(lent, "h2", 2)
    with pytest.raises(errors.BufferShortage):
        borrow(lent, "h1", 2, "h2")


def test_what_the_destination_is_not_linked_to_is_borrowed_anew(ledger):
    """A zombie is out of its reach; of an active host it has new ones."""
    ledger.buffers.delegate(Lender("h1", LIFE, LenderKind.ZOMBIE, BUFFER), 1, {0: 0, 1: BUFFER})
    fill_escrow(ledger, "h1", "h2", "h3")
    borrow(ledger, "h2", 2)
    ledger.hosts.heartbeat(report("h3", 2, pools=[], borrowed={"lenders": [], "links": []}))
    ledger.hosts.heartbeat(report("h4", 1, pools=[], borrowed={"lenders": [], "links": []}))
    other = "44444444-4444-4444-8444-444444444444"
    ledger.buffers.delegate(Lender("h4", other, LenderKind.ACTIVE, BUFFER), 1, {0: 0, 1: BUFFER})
    assert [handed for _, handed in borrow(ledger, "h3", 2, "h2")[1]] == [False, False]


def test_what_its_lender_lost_is_the_heirs_to_let_go_of(lent):
    there, _ = borrow(lent, "h2", 2)
    here, _ = borrow(lent, "h3", 2, "h2")
    lent.buffers.delegate(Lender("h1", str(uuid4()), LenderKind.ACTIVE, BUFFER), 2, {})
    give_back(lent, there, "h2")
    assert owners(lent) == [("quarantined", "h3", False)] * 2
    give_back(lent, here, "h3")
    assert not lent.buffers.find("h1")
    assert not lent.loans.allocations()
