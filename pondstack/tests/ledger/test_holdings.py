"""What hosts are to hold for themselves, and their slices, in the ledger, on all three databases."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pondstack.db.read.replica import follow, load
from pondstack.domain.errors import (
    BadRequest,
    Conflict,
    GenerationConflict,
    HostUnusable,
    NotEmpty,
    NotFound,
    PurposeConflict,
)
from pondstack.domain.host_slices import Holding, HoldingKey
from pondstack.domain.purpose import Purpose
from pondstack.domain.requests import AssignRequest
from pondstack.ledger.churn import ChurnLog
from tests.fixtures.ledgers import POOL, report

TIER, BASE = (HoldingKey("h1", POOL, purpose) for purpose in (Purpose.TIER, Purpose.BASE))
GUEST = AssignRequest("44444444-4444-4444-8444-444444444444", "h1", POOL, 1024, 2048)


def slice_of(key, number=0):
    return AssignRequest(key.consumer(number), key.host, POOL, 1024, 0, purpose=key.purpose)


def order(ledger, request):
    """Return the id of an order to hold a slice, given now."""
    now = ledger._transactions.read(lambda tx: ledger._transactions.store.hosts.get(tx, request.host)).generation
    return HoldingKey(request.host, request.pool_uuid, request.purpose).order(now, uuid4())


def hold(ledger, request, operation_id=None):
    return ledger.slices.assign(operation_id or order(ledger, request), request)


def test_a_wish_is_kept_and_repeated(ledger, reader):
    assert ledger.holdings.want(TIER, 2, 0, "op-1") == 1
    assert ledger.holdings.want(TIER, 2, 0, "op-1") == 1, "a repetition is no conflict"
    assert ledger.holdings.find() == [Holding("h1", POOL, Purpose.TIER, 2)]
    assert ledger.holdings.want(TIER, 2, 1) == 1, "nothing changed"
    with pytest.raises(GenerationConflict):
        ledger.holdings.want(TIER, 3, 0)
    ledger.holdings.note(ledger.holdings.find()[0], "it waits")
    ledger.holdings.want(BASE, 1)
    view = reader.rack()
    assert [(item.purpose, item.wanted, item.reason) for item in view.holdings.values()] == [
        (Purpose.BASE, 1, ""),
        (Purpose.TIER, 2, "it waits"),
    ]
    assert reader.host("h1").generation == 2


def test_what_cannot_be_is_refused(ledger):
    with pytest.raises(BadRequest, match="has 4 slices"):
        ledger.holdings.want(TIER, 5)
    with pytest.raises(BadRequest, match="Nova's"):
        ledger.holdings.want(replace(TIER, purpose=Purpose.GUEST), 1)
    with pytest.raises(NotFound, match="no host"):
        ledger.holdings.want(replace(TIER, host="nobody"), 1)
    with pytest.raises(NotFound, match="no pool"):
        ledger.holdings.want(replace(TIER, pool_uuid="nothing"), 1)
    ledger.hosts.heartbeat(report("h1", sequence=2, pools=[]))
    with pytest.raises(HostUnusable, match="does not reach"):
        ledger.holdings.want(TIER, 1)


def test_only_a_host_slice_that_is_wanted_and_missing_is_assigned(ledger, database):
    with pytest.raises(Conflict, match="to hold 0 slices"):
        hold(ledger, slice_of(TIER))
    ledger.holdings.want(TIER, 1)
    before = database.read(load)
    ordered = order(ledger, slice_of(TIER))
    given = hold(ledger, slice_of(TIER), ordered)
    assert hold(ledger, slice_of(TIER), ordered) == given
    with pytest.raises(Conflict, match="none that is missing"):
        hold(ledger, slice_of(TIER))
    with pytest.raises(Conflict, match="to hold 1 slices"):
        hold(ledger, slice_of(TIER, 1))
    with pytest.raises(Conflict):
        hold(ledger, replace(slice_of(TIER), purpose=Purpose.BASE))
    for view in (database.read(load).view, database.read(lambda session: follow(session, before)).view):
        assert [aged.item.purpose for aged in view.allocations.values()] == [Purpose.TIER]
        assert view.guest_pools("h1") == ()
        assert view.guest_pools("h2") == (POOL,)


def test_an_order_is_void_once_its_host_was_fenced_or_was_to_hold_nothing(ledger):
    """Its claim went with that. What was assigned before is answered as ever: its claim stays until it is released."""
    ledger.holdings.want(BASE, 2)
    given = order(ledger, slice_of(BASE))
    held = hold(ledger, slice_of(BASE), given)
    late = order(ledger, slice_of(BASE, 1))
    ledger.holdings.want(BASE, 1)
    ledger.holdings.want(BASE, 2)
    with pytest.raises(Conflict, match=r"generation is 3\) since it was told"):
        hold(ledger, slice_of(BASE, 1), late)
    assert hold(ledger, slice_of(BASE), given) == held
    late = order(ledger, slice_of(BASE, 1))
    ledger.failures.fence_host("h1", "it burns", force=True)
    ledger.hosts.heartbeat(report("h1", sequence=2))
    ledger.failures.unfence_host("h1")
    with pytest.raises(Conflict, match="the controller tells it again by itself"):
        hold(ledger, slice_of(BASE, 1), late)
    with pytest.raises(Conflict, match="tells it again"):
        hold(ledger, slice_of(BASE, 1), "an order of the former release")
    hold(ledger, slice_of(BASE, 1))


def test_a_node_is_for_guests_or_for_tiering(ledger, reader):
    ledger.holdings.want(TIER, 1)
    ledger.holdings.want(BASE, 1)
    hold(ledger, slice_of(BASE))
    guest = ledger.slices.assign("op-2", GUEST)["allocation_uuid"]
    with pytest.raises(PurposeConflict, match="move these guests away"):
        hold(ledger, slice_of(TIER))
    assert reader.rack().guest_pools("h1") == (), "one that wants a tier gets no more guests"
    ledger.slices.release("op-4", guest, "h1")
    hold(ledger, slice_of(TIER))
    with pytest.raises(PurposeConflict, match="for tiering"):
        ledger.slices.assign("op-6", GUEST)
    ledger.slices.assign("op-7", replace(GUEST, host="h2"))


def test_a_base_slice_keeps_no_guest_away(ledger, reader):
    ledger.holdings.want(BASE, 1)
    hold(ledger, slice_of(BASE))
    assert reader.rack().guest_pools("h1") == (POOL,)
    ledger.slices.assign("op-2", GUEST)


def test_it_ends_when_nothing_is_wanted_and_nothing_is_left(ledger):
    ledger.holdings.want(TIER, 1)
    held = hold(ledger, slice_of(TIER))["allocation_uuid"]
    with pytest.raises(Conflict):
        ledger.holdings.end(TIER)
    ledger.holdings.want(TIER, 0)
    with pytest.raises(Conflict):
        ledger.holdings.end(TIER)
    ledger.slices.release("op-2", held, "h1")
    ledger.holdings.end(TIER)
    ledger.holdings.end(TIER)
    assert ledger.holdings.find() == []


def test_neither_host_nor_pool_goes_while_host_slices_are_wanted(ledger):
    ledger.holdings.want(TIER, 2)
    ledger.removal._down = -1.0
    with pytest.raises(NotEmpty, match=r"2 tier slices that h1 is to hold.*--tier-slices 0"):
        ledger.removal.remove_host("h1", "op-1")
    with pytest.raises(NotEmpty, match="2 tier slices that h1 is to hold"):
        ledger.removal.check_pool(POOL)
    ledger.holdings.want(TIER, 0)
    ledger.removal.remove_host("h1", "op-2")
    assert ledger.holdings.find() == []


def test_host_slices_are_no_starts(ledger):
    ledger.holdings.want(TIER, 1)
    hold(ledger, slice_of(TIER))
    assert starts(ledger) == 0
    ledger.slices.assign("op-2", replace(GUEST, host="h2"))
    assert starts(ledger) == 1


def starts(ledger):
    log = ChurnLog()
    log.add(ledger.free_buffers.recent(None, 3600.0), 3600.0)
    return len(log.of(POOL).taken)
