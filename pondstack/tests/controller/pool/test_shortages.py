"""Starts that find too few free slices: those that may wait, and those that need not. The pool has 8 slices."""

from uuid import uuid4

import pytest

from pondstack.controller.pool.inventory import wanted_inventory
from pondstack.domain.causes import Cause
from pondstack.domain.errors import PoolFragmented, PoolShortage, SlicesReturning, Unavailable
from pondstack.domain.rack import RackView
from pondstack.tests.controller.conftest import POOL
from pondstack.tests.controller.leader.test_endpoint import split

NEW = str(uuid4())


def full(rack, slices=6):
    """Have guests hold slices; what they claim is known."""
    grant = rack.online(slices=slices)
    rack.claims = {POOL: {grant.consumer_uuid: slices * 1024, NEW: 4096}}
    rack.beat()
    return grant


def gone(rack, grant):
    """Have a guest's claim end; its host takes the memory offline in the background."""
    del rack.claims[POOL][grant.consumer_uuid]


def misses(rack) -> int:
    return rack.reader.pool(POOL).free_buffer.misses


def test_memory_that_comes_back_is_worth_waiting_for(rack):
    gone(rack, full(rack))
    with pytest.raises(SlicesReturning, match="pool pool0: 4 slices are wanted, 2 are free and 6 on their way back"):
        rack.assign(slices=4, consumer=NEW)


def test_it_gets_its_slices_by_the_same_operation(rack):
    grant = full(rack)
    gone(rack, grant)
    for _ in range(2):
        with pytest.raises(SlicesReturning):
            rack.assign(slices=4, consumer=NEW, operation_id="op")
    rack.release(grant.allocation_uuid)
    with pytest.raises(SlicesReturning):
        rack.assign(slices=4, consumer=NEW, operation_id="op")
    rack.sanitizer.drain()
    assert rack.assign(slices=4, consumer=NEW, operation_id="op").consumer_uuid == NEW
    assert misses(rack) == 1


def test_memory_that_is_held_is_not(rack):
    full(rack)
    with pytest.raises(PoolShortage, match=r"4 slices are wanted and 2 are free; .* \(0 more are on their way back\)"):
        rack.assign(slices=4, consumer=NEW)
    assert misses(rack) == 1


def test_too_little_that_comes_back_is_not(rack):
    stays, goes = rack.online(slices=5), rack.online(slices=1)
    rack.claims = {POOL: {stays.consumer_uuid: 5120, goes.consumer_uuid: 1024, NEW: 4096}}
    gone(rack, goes)
    with pytest.raises(PoolShortage, match=r"\(1 more are on their way back\)"):
        rack.assign(slices=4, consumer=NEW)


def test_who_was_not_admitted_does_not_wait_and_is_no_miss(rack):
    gone(rack, full(rack))
    rack.claims[POOL][NEW] = 3072
    with pytest.raises(PoolShortage, match="4 slices are wanted and 2 are free"):
        rack.assign(slices=4, consumer=NEW)
    assert misses(rack) == 0


def test_without_placement_the_ledger_tells_what_comes_back(rack):
    grant = full(rack)

    def away(_view: RackView):
        raise Unavailable("Placement does not answer")

    rack.endpoint._shortages._claims = away
    with pytest.raises(PoolShortage, match="0 more"):
        rack.assign(slices=4, consumer=NEW)
    rack.ledger.slices.mark_claims([], [grant.allocation_uuid])
    with pytest.raises(SlicesReturning):
        rack.assign(slices=4, consumer=NEW)
    rack.ledger.slices.mark_claims([grant.allocation_uuid], [])
    rack.ledger.slices.begin_release(grant.allocation_uuid, "unclaimed")
    with pytest.raises(SlicesReturning):
        rack.assign(slices=4, consumer=NEW)


def test_memory_of_a_silent_host_does_not_come_back_by_itself(rack):
    gone(rack, full(rack))
    rack.endpoint._shortages._down = -1.0
    with pytest.raises(PoolShortage, match="0 more"):
        rack.assign(slices=4, consumer=NEW)


def test_memory_that_is_stuck_does_not_come_back_by_itself(rack):
    grant = full(rack)
    gone(rack, grant)
    rack.agents["h1"].stuck = {grant.allocation_uuid: "pages"}
    rack.beat()
    with pytest.raises(PoolShortage, match="0 more"):
        rack.assign(slices=4, consumer=NEW)


def test_memory_in_quarantine_does_not_come_back_by_itself(rack):
    grant = full(rack)
    gone(rack, grant)
    rack.ledger.slices.quarantine_allocation(grant.allocation_uuid, Cause.AGENT_DOWN, "h1 is silent")
    with pytest.raises(PoolShortage, match="0 more"):
        rack.assign(slices=4, consumer=NEW)


def test_a_shape_that_does_not_fit_is_no_miss(rack):
    gone(rack, full(rack, 5))
    rack.ledger.slices.quarantine(POOL, [6], Cause.PERMISSION_LEFT, "h1 is let in")
    with pytest.raises(PoolFragmented):
        rack.assign(slices=2, consumer=NEW, shape=[2])
    assert misses(rack) == 0


def reserved(rack) -> int:
    return wanted_inventory(rack.reader.rack(), POOL).reserved // 1024


def test_the_buffer_is_what_starts_use_while_memory_comes_back(rack):
    """Placement keeps back what comes back or the buffer, not both; what is in quarantine besides."""
    grant = full(rack, 2)
    assert reserved(rack) == 1
    rack.ledger.slices.mark_claims([], [grant.allocation_uuid])
    assert reserved(rack) == 2
    rack.release(grant.allocation_uuid)
    assert reserved(rack) == 2
    rack.ledger.slices.quarantine(POOL, [7], Cause.PERMISSION_LEFT, "h1 is let in")
    assert reserved(rack) == 3
    rack.sanitizer.drain()
    assert reserved(rack) == 2


def test_a_split_may_use_the_buffer_while_memory_comes_back(rack):
    grant = full(rack, 2)
    rack.claims[POOL].pop(NEW)
    with pytest.raises(PoolShortage, match="has 5120 MiB free"):
        split(rack, "fixed", pool_mib=6144, memory_mib=40 * 1024)
    gone(rack, grant)
    assert split(rack, "fixed", pool_mib=6144, memory_mib=40 * 1024).pool_mib == 6144


def test_what_comes_back_hides_no_claim_that_waits_for_its_slices(rack):
    grant = full(rack, 4)
    gone(rack, grant)
    assert rack.claims == {POOL: {NEW: 4096}}
    assert split(rack, "auto", memory_mib=20 * 1024, instance="other").pool_mib == 0
