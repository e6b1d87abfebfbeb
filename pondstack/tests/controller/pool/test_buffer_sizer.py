"""The sizes of free buffers over the life of leaders. The pool has 8 slices."""

from types import SimpleNamespace

import pytest

from pondstack.controller.pool.buffer_sizer import BufferSizer
from pondstack.domain.free_buffer import FreeBuffer
from pondstack.domain.units import RESOURCE_CLASS
from pondstack.tests.controller.conftest import POOL
from tests.fixtures.rpc_call import call


@pytest.fixture
def options():
    return SimpleNamespace(
        free_buffer_slices=1,
        free_buffer_max_percent=50,
        free_buffer_window_seconds=3600.0,
        free_buffer_hold_seconds=600.0,
    )


def leader(rack, options):
    """Return the sizer of a new leader."""
    return BufferSizer(rack.ledger, rack.reader.rack, options, lambda: rack.published.append("sizer"))


def come_and_go(rack, slices):
    """Have a guest come, and its memory come back."""
    grant = rack.online(slices=slices)
    rack.release(grant.allocation_uuid)
    rack.sanitizer.drain()
    rack.published.clear()


def size(rack) -> FreeBuffer:
    return rack.reader.pool(POOL).free_buffer


def test_it_is_as_large_as_what_starts_take_while_memory_comes_back(rack, options):
    sizer = leader(rack, options)
    come_and_go(rack, 3)
    sizer.run()
    assert (size(rack).slices, size(rack).needed_slices, size(rack).starts) == (3, 3, 1)
    assert size(rack).give_back_seconds is not None
    assert rack.published == ["sizer"]
    sizer.run()
    assert rack.published == ["sizer"]


def test_placement_and_scheduler_are_told_of_it(placed, options):
    come_and_go(placed, 3)
    leader(placed, options).run()
    placed.sync.write(placed.reader.rack())
    assert placed.placement.inventory(POOL, RESOURCE_CLASS).reserved == 3 * 1024
    assert call(placed.endpoint.snapshot)["pools"][0]["buffer_slices"] == 3


def test_it_stays_within_the_bounds(rack, options):
    come_and_go(rack, 6)
    leader(rack, options).run()
    assert size(rack).slices == 4
    assert size(rack).needed_slices == 6


def test_the_options_count_at_once(rack, options):
    sizer = leader(rack, options)
    come_and_go(rack, 4)
    sizer.run()
    options.free_buffer_max_percent = 25
    sizer.run()
    assert size(rack).slices == 2
    options.free_buffer_slices = 5
    sizer.run()
    assert size(rack).slices == 5


def test_a_new_leader_goes_on_with_the_size_and_its_reasons(rack, options):
    come_and_go(rack, 3)
    leader(rack, options).run()
    before = size(rack)
    leader(rack, options).run()
    assert size(rack) == before
    assert rack.published == ["sizer"]


def test_a_new_leader_does_not_shrink_what_it_has_not_watched(rack, options):
    rack.ledger.free_buffers.resize(POOL, FreeBuffer(4, 4, 1.0, 1))
    leader(rack, options).run()
    assert size(rack).slices == 4
    options.free_buffer_hold_seconds = 0.0
    leader(rack, options).run()
    assert size(rack).slices == 1
