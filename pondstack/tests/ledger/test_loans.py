"""Loans in the ledger: their admission, what is asked back, and since when nobody claims them; on all databases."""

from uuid import uuid4

import pytest

from pondstack.domain.errors import Unclaimed
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from tests.fixtures.ledgers import report

BUFFER, LIFE = 64, "22222222-2222-4222-8222-222222222222"
VM = "33333333-3333-4333-8333-333333333333"


@pytest.fixture
def lent(ledger):
    """Host h1 lends four buffers."""
    for host in ("h1", "h2"):
        ledger.hosts.heartbeat(report(host, pools=[], borrowed={"lenders": []}))
    offsets = {index: index * BUFFER for index in range(4)}
    ledger.buffers.delegate(Lender("h1", LIFE, LenderKind.ACTIVE, BUFFER), 1, offsets)
    return ledger


def borrow(lent, count=2, claimed_mib=None, *, guaranteed=True, consumer=VM):
    wanted = BorrowRequest(consumer, "h2", count * BUFFER, guaranteed)
    return lent.loans.borrow(str(uuid4()), wanted, BUFFER, claimed_mib)["allocation_uuid"]


def states(lent):
    return [str(item.state) for item in lent.buffers.find("h1")]


def test_what_is_guaranteed_is_never_more_than_the_claim(lent):
    with pytest.raises(Unclaimed, match=f"consumer {VM} claims 64 MiB"):
        borrow(lent, 2, BUFFER)
    assert states(lent) == ["free"] * 4
    borrow(lent, 2, 2 * BUFFER)
    with pytest.raises(Unclaimed, match="has 128 MiB and wants 64 more"):
        borrow(lent, 1, 2 * BUFFER)


def test_swap_and_other_consumers_do_not_count(lent):
    borrow(lent, 1, guaranteed=False)
    borrow(lent, 1, BUFFER, consumer=str(uuid4()))
    assert borrow(lent, 1, BUFFER)


def test_what_is_on_its_way_back_does_not_count(lent):
    first = borrow(lent, 2, 2 * BUFFER)
    lent.loans.ask_back(first, "for the test")
    assert borrow(lent, 2, 2 * BUFFER)


def test_nobody_looked_so_nothing_is_refused(lent):
    assert borrow(lent, 4)


def test_a_loan_is_asked_back_whole_or_in_part(lent):
    uuid = borrow(lent, 3)
    assert lent.loans.ask_back(uuid, "for the test", [(LIFE, 1)]) == 1
    assert states(lent) == ["assigning", "releasing", "assigning", "free"]
    assert lent.loans.ask_back(uuid, "for the test") == 2
    assert lent.loans.ask_back(uuid, "for the test") == 0
    assert states(lent) == ["releasing"] * 3 + ["free"]
    assert {item.reason for item in lent.buffers.find("h1") if item.host} == {"for the test"}


def make_way(lent, host, count, **lends):
    request = BorrowRequest(str(uuid4()), host, count * BUFFER, True)
    return lent.loans.make_way(request, BUFFER, lends, "for the test")


def test_best_effort_loans_make_way_for_a_guaranteed_one(lent):
    uuid, other = borrow(lent, 3, guaranteed=False), borrow(lent, 1)
    assert make_way(lent, "h3", 2) == (0, 0), "not before they are acknowledged"
    for each in (uuid, other):
        lent.loans.acknowledge(str(uuid4()), each, "h2")
    assert make_way(lent, "h3", 4) == (0, 0), "they are too few"
    assert make_way(lent, "h1", 1) == (0, 0), "their lender borrows none of them"
    assert states(lent).count("online") == 4
    assert make_way(lent, "h3", 4, h2=2 * BUFFER) == (2, 2), "h2 is to lend the others"
    assert states(lent).count("releasing") == 2
    assert make_way(lent, "h3", 2) == (2, 0), "they are on their way"
    assert make_way(lent, "h3", 3) == (3, 1)


def test_what_has_come_back_meanwhile_is_not_asked_for_again(lent):
    uuid, other = borrow(lent, 2, guaranteed=False), borrow(lent, 2, guaranteed=False)
    for each in (uuid, other):
        lent.loans.acknowledge(str(uuid4()), each, "h2")
    lent.loans.give_back(str(uuid4()), uuid, "h2")
    assert make_way(lent, "h3", 2) == (2, 0), "it is on its way"
    lent.buffers.sanitized("h1", LIFE, [0, 1])
    assert make_way(lent, "h3", 2) == (0, 0), "it is there"
    assert make_way(lent, "h3", 3, h1=4 * BUFFER) == (1, 1), "h1 lends all that it was asked for"


def test_a_loan_keeps_since_when_nobody_claims_it(lent, reader):
    uuid = borrow(lent)
    lent.loans.mark_claims([], [uuid])
    assert reader.rack(lent=True).lent.loans[uuid].unclaimed_seconds >= 0.0
    lent.loans.mark_claims([uuid], [])
    assert reader.rack(lent=True).lent.loans[uuid].unclaimed_seconds is None


def test_where_a_consumer_has_borrowed(lent, reader):
    borrow(lent)
    assert reader.borrowing_hosts(VM) == {"h2"}
    assert reader.borrowing_hosts(str(uuid4())) == set()


def test_all_is_read_at_one_moment(lent, reader):
    uuid = borrow(lent, 1)
    seen = reader.rack(lent=True).lent
    assert list(seen.lenders) == ["h1"]
    assert [aged.item for aged in seen.buffers] == lent.buffers.find("h1")
    assert all(aged.age_seconds >= 0.0 for aged in seen.buffers)
    assert (seen.loans[uuid].item.consumer_uuid, seen.loans[uuid].item.guaranteed) == (VM, True)
    assert reader.rack().lent.loans == {}, "it is read where it was asked for only"
