"""Free buffers in the ledger: sizes, misses, and the churn that the journal tells of, on all databases."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pondstack.domain.causes import Cause
from pondstack.domain.free_buffer import UNSIZED, FreeBuffer
from pondstack.domain.requests import AssignRequest
from pondstack.ledger.churn import ChurnLog
from pondstack.ledger.store import Entry, Recent
from tests.fixtures.ledgers import POOL

HOUR = 3600.0


def request(slices=2):
    return AssignRequest(str(uuid4()), "h1", POOL, slices * 1024, guest_mib=4096)


def churn(ledger):
    log = ChurnLog()
    log.add(ledger.free_buffers.recent(None, HOUR), HOUR)
    return log.of(POOL)


def held(ledger, operation_id="op-1", slices=2):
    uuid = ledger.slices.assign(operation_id, request(slices))["allocation_uuid"]
    ledger.slices.acknowledge(operation_id, uuid, "h1")
    return uuid


def kinds(ledger):
    return [entry.kind for entry in ledger.free_buffers.recent(None, HOUR).entries]


def test_a_size_is_kept_and_journaled_when_it_is_another_one(ledger, reader):
    assert reader.pool(POOL).free_buffer == UNSIZED
    assert reader.rack().pools[POOL].free_buffer == UNSIZED
    ledger.free_buffers.resize(POOL, FreeBuffer(3, 5, 12.5, 7))
    ledger.free_buffers.resize(POOL, FreeBuffer(3, 4, 12.0, 8))
    assert reader.pool(POOL).free_buffer == FreeBuffer(3, 4, 12.0, 8)
    assert reader.rack().pools[POOL].free_buffer == FreeBuffer(3, 4, 12.0, 8)
    assert kinds(ledger).count("resize_buffer") == 1
    assert reader.pool(POOL).generation == 0


def test_a_pool_that_was_removed_meanwhile_is_left_out(ledger):
    ledger.free_buffers.resize("22222222-2222-4222-8222-222222222222", FreeBuffer(3))
    assert "resize_buffer" not in kinds(ledger)


def test_a_start_that_asks_again_is_one_miss(ledger, reader):
    wanted = request(3)
    for _ in range(3):
        ledger.free_buffers.miss("op-1", wanted, 3)
    ledger.free_buffers.miss("op-2", request(1), 1)
    assert reader.pool(POOL).free_buffer == replace(UNSIZED, misses=2)
    ledger.free_buffers.resize(POOL, FreeBuffer(2, misses=0))
    assert reader.pool(POOL).free_buffer == FreeBuffer(2, misses=2)


def test_a_start_that_missed_and_got_its_slices_later_asked_once(ledger):
    wanted = request(3)
    ledger.free_buffers.miss("op-1", wanted, 3)
    ledger.slices.assign("op-1", wanted)
    ledger.slices.assign("op-2", request(1))
    assert [item.slices for item in churn(ledger).taken] == [3, 1]


def test_what_is_handed_over_takes_nothing_of_the_buffer(ledger):
    wanted = request()
    ledger.slices.acknowledge("op-1", ledger.slices.assign("op-1", wanted)["allocation_uuid"], wanted.host)
    assert ledger.slices.assign("op-2", replace(wanted, host="h2", source="h1"), hands_over=True)["handed"]
    assert [item.slices for item in churn(ledger).taken] == [2]


def test_each_slice_that_came_back_is_measured(ledger):
    uuid = held(ledger)
    ledger.slices.release("op-2", uuid, "h1")
    assert churn(ledger).give_back_seconds == ()
    ledger.slices.sanitized(POOL, [0, 1])
    assert len(churn(ledger).give_back_seconds) == 2
    assert all(0 <= seconds < 60 for seconds in churn(ledger).give_back_seconds)


def test_the_journal_goes_on_from_where_it_was_read(ledger):
    log = ChurnLog()
    log.add(ledger.free_buffers.recent(log.sequence, HOUR), HOUR)
    uuid = held(ledger)
    log.add(ledger.free_buffers.recent(log.sequence, HOUR), HOUR)
    assert ledger.free_buffers.recent(log.sequence, HOUR).entries == []
    ledger.slices.release("op-2", uuid, "h1")
    log.add(ledger.free_buffers.recent(log.sequence, HOUR), HOUR)
    ledger.slices.sanitized(POOL, [0, 1])
    log.add(ledger.free_buffers.recent(log.sequence, HOUR), HOUR)
    assert len(log.of(POOL).taken) == 1
    assert len(log.of(POOL).give_back_seconds) == 2


def test_a_release_says_for_how_long_nobody_claimed_it(ledger):
    claimed, unclaimed = held(ledger, "op-1", 1), held(ledger, "op-2", 1)
    ledger.slices.mark_claims([], [unclaimed])
    ledger.slices.release("op-3", claimed, "h1")
    ledger.slices.release("op-4", unclaimed, "h1")
    told = [
        e.effect["unclaimed_seconds"] for e in ledger.free_buffers.recent(None, HOUR).entries if e.kind == "release"
    ]
    assert told[0] is None
    assert 0 <= told[1] < 60


def test_what_was_quarantined_meanwhile_is_no_measure(ledger):
    uuid = held(ledger)
    ledger.slices.begin_release(uuid, "unclaimed")
    ledger.slices.quarantine_allocation(uuid, Cause.AGENT_DOWN, "h1 is silent")
    ledger.slices.release("op-2", uuid, "h1")
    ledger.slices.sanitized(POOL, [0, 1])
    assert churn(ledger).give_back_seconds == ()


def move(before, after):
    return {"pool": POOL, "indexes": [0], "from": before, "to": after}


def told(*entries):
    """Give a log the operations at their moments; returns it."""
    log = ChurnLog()
    listed = [Entry(str(at), kind, {"moves": [move(*moved)], **more}, at) for at, kind, moved, more in entries]
    log.add(Recent(listed, len(listed), entries[-1][0]), HOUR)
    return log


FREED = (130.0, "sanitized", ("sanitizing", "free"), {})


@pytest.mark.parametrize(
    ("release", "seconds"),
    [
        ([(120.0, "release", ("online", "sanitizing"), {"unclaimed_seconds": 15.0})], 25.0),
        ([(120.0, "release", ("online", "sanitizing"), {"unclaimed_seconds": None})], 10.0),
        ([(120.0, "release", ("online", "sanitizing"), {})], 10.0),
        (
            [
                (110.0, "begin_release", ("online", "releasing"), {}),
                (120.0, "release", ("releasing", "sanitizing"), {"unclaimed_seconds": 15.0}),
            ],
            25.0,
        ),
        (
            [
                (100.0, "begin_release", ("online", "releasing"), {}),
                (120.0, "release", ("releasing", "sanitizing"), {"unclaimed_seconds": 15.0}),
            ],
            30.0,
        ),
    ],
)
def test_it_is_on_its_way_from_when_nobody_claimed_it_or_its_release_began(release, seconds):
    assert told(*release, FREED).of(POOL).give_back_seconds == (seconds,)


def test_what_was_reinstated_was_not_given_back():
    begun = (100.0, "begin_release", ("online", "releasing"), {})
    back = (105.0, "reinstate", ("releasing", "online"), {})
    release = (120.0, "release", ("online", "sanitizing"), {})
    assert told(begun, back, release, FREED).of(POOL).give_back_seconds == (10.0,)


def test_what_is_older_than_the_window_is_forgotten():
    log = told((120.0, "release", ("online", "sanitizing"), {}), FREED)
    log.add(
        Recent([Entry("a", "assign", {"pool_uuid": POOL, "extents": [{"start": 0, "count": 2}]}, 140.0)], 3, 140.0),
        HOUR,
    )
    log.add(Recent([], 3, 130.0 + HOUR), HOUR)
    assert len(log.of(POOL).give_back_seconds) == 1
    log.add(Recent([], 3, 130.5 + HOUR), HOUR)
    assert log.of(POOL).give_back_seconds == ()
    assert len(log.of(POOL).taken) == 1
    log.add(Recent([], 3, 140.5 + HOUR), HOUR)
    assert log.of(POOL).taken == ()
