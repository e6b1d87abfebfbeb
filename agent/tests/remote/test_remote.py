"""Remote memory of a consumer: borrowed, used, taken back, lost, released, by real processes under a real ledger."""

import pytest

from pondstack.domain.errors import (
    BadRequest,
    BufferShortage,
    Conflict,
    HostUnusable,
    OperationMismatch,
    Unavailable,
    Unclaimed,
)
from pondstack_agent.remote.remote import FORGOTTEN_SECONDS

from .conftest import CONSUMER


@pytest.fixture
def lent(rack):
    """Two hosts lend 4 MiB each; a third one is to borrow."""
    for name in ("host1", "host2"):
        rack.lend(name, 4)
    assert rack.borrower
    for host in rack.hosts.values():  # to begin a host may take longer than it may be silent
        host.beat()
    return rack


def test_guaranteed_memory_is_all_or_nothing(lent) -> None:
    with pytest.raises(BufferShortage):
        lent.borrower.alloc(9)
    assert lent.free()
    assert lent.borrower.remote.views() == []
    assert lent.borrower.alloc(8, operation="alloc2")["borrowed_mib"] == 8


@pytest.mark.parametrize("guaranteed", [True, False])
def test_a_lender_that_gives_no_key(lent, guaranteed) -> None:
    """Its keys die between the answer of the controller and their use."""
    host, prepare = lent.borrower, lent.borrower.borrower.prepare
    lost = []

    def first_fails(lender, *given):
        if not lost:
            lost.append(lender)
            raise Unavailable("the lender does not answer")
        return prepare(lender, *given)

    host.borrower.prepare = first_fails
    if guaranteed:
        with pytest.raises(Unavailable, match="do not give"):
            host.alloc(4)
    seen = host.view if guaranteed else host.swap
    assert (host.alloc(4) if guaranteed else host.attach_swap(4))["borrowed_mib"] == (4 if guaranteed else 2)
    lent.turn(4)
    assert seen()["borrowed_mib"] == 4
    assert lent.controller.states() == {"free": 4, "online": 4}
    assert host.release() if guaranteed else host.release_swap()
    lent.turn(3)
    assert lent.free()


def test_what_nobody_comes_back_for_is_undone(lent) -> None:
    host = lent.borrower
    lent.controller.away = True
    with pytest.raises(Unavailable):
        host.alloc(4)
    lent.controller.away = False
    host.remote.maintain(1e9)
    host.later.run()
    assert host.view()["state"] == "asking"
    host.now += 4000
    host.beat()
    lent.turn(2)
    assert host.remote.views() == []
    assert lent.free()


def test_another_request_of_the_same_consumer_is_refused(lent) -> None:
    host = lent.borrower
    host.alloc(2)
    with pytest.raises(OperationMismatch):
        host.alloc(3)
    with pytest.raises(Conflict, match="release it first"):
        host.alloc(2, operation="alloc2")
    assert host.view()["borrowed_mib"] == 2


@pytest.mark.parametrize("mib", [0, -1])
def test_no_memory_is_refused(rack, mib) -> None:
    with pytest.raises(BadRequest):
        rack.borrower.alloc(mib)
    assert rack.borrower.remote.views() == []


@pytest.mark.parametrize("name", ["", "../../etc", "7AC7E33B-55C9-4F7F-8B23-C4A1F2C52F3B", "x"])
def test_a_consumer_is_a_uuid(rack, name) -> None:
    with pytest.raises(BadRequest, match="UUID"):
        rack.borrower.calls.alloc_ext(operation_id="o", consumer_uuid=name, mib=1)
    assert rack.borrower.remote.views() == []


def test_what_nobody_claims_any_more_is_undone(lent, monkeypatch) -> None:
    host = lent.borrower
    lent.controller.away = True
    with pytest.raises(Unavailable):
        host.alloc(4)
    lent.controller.away = False

    def unclaimed(*_arguments):
        raise Unclaimed("the consumer claims nothing; claim it first")

    monkeypatch.setattr(lent.controller.lenders, "borrow", unclaimed)
    host.now += 4000
    host.beat()
    lent.turn(2)
    assert host.remote.views() == []


def test_a_guaranteed_request_without_a_claim_leaves_nothing(lent, monkeypatch) -> None:
    host = lent.borrower

    def unclaimed(*_arguments):
        raise Unclaimed("the consumer claims nothing; claim it first")

    with monkeypatch.context() as patch:
        patch.setattr(lent.controller.lenders, "borrow", unclaimed)
        with pytest.raises(Unclaimed):
            host.alloc(4)
    assert host.remote.views() == []
    assert host.alloc(4, operation="alloc2")["borrowed_mib"] == 4


def _forget(lent, host, monkeypatch) -> None:
    """Have Nova claim nothing of an instance any more, and the controller ask back what it had borrowed."""

    def unclaimed(*_arguments):
        raise Unclaimed("the consumer claims nothing; claim it first")

    [allocation] = host.view()["allocations"]
    monkeypatch.setattr(lent.controller.lenders, "borrow", unclaimed)
    lent.controller.ledger.loans.ask_back(allocation, "unclaimed: for the test")
    lent.turn(2)


def test_what_an_instance_had_that_nova_forgot_ends(lent, monkeypatch) -> None:
    """Its guest was lost to Nova elsewhere, so that nobody here was told; one that is off keeps its claim."""
    host = lent.borrower
    host.alloc(4)
    _forget(lent, host, monkeypatch)
    host.beat()
    assert host.view()["borrowed_mib"] == 0
    host.now += FORGOTTEN_SECONDS - 10
    host.beat()
    assert host.view()["state"] == "active", "its claim may come back"
    host.now += 20
    host.beat()
    assert host.remote.views() == []


def test_what_is_served_or_claimed_again_stays(lent, monkeypatch) -> None:
    host = lent.borrower
    host.alloc(4)
    host.data_plane.boot(CONSUMER, 8)
    host.calls.extend(consumer_uuid=CONSUMER, memory_mib=8, local_mib=4)
    with monkeypatch.context() as patch:
        _forget(lent, host, patch)
        host.beat()
        host.now += 10 * FORGOTTEN_SECONDS
        host.beat()
        assert host.view()["state"] == "active", "a process of it is served"
    lent.turn(2)
    assert host.view()["borrowed_mib"] == 4
    assert host.remote._unclaimed_since == {}, "another time counts anew"


def test_the_former_way_to_a_swap_device_is_told_to_be_gone(lent) -> None:
    with pytest.raises(HostUnusable, match="attach_swap"):
        lent.borrower.calls.alloc_swap(operation_id="o", consumer_uuid="any", mib=1)
    assert lent.borrower.remote.views() == []
