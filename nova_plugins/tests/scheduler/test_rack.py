"""Which host reaches which pool, and what is free there."""

from pondstack.rpc.wire import Snapshot
from pondstack_nova.scheduler.rack import Rack, comfort


def test_fitting_pools_are_those_with_room_that_a_usable_host_reaches(make_pool) -> None:
    """Unreached, full and failed pools do not count, and no pool counts for an unusable host."""
    pools = (
        make_pool("near", 4, "a", "b"),
        make_pool("far", 16, "b"),
        make_pool("full", 1, "a"),
        make_pool("dead", 16, "a", state="failed"),
    )
    rack = Rack(Snapshot(1, pools, usable_hosts=("a",), unusable_hosts={"b": "disabled"}))
    assert [pool.name for pool in rack.fitting("a", 2048)] == ["near"]
    assert rack.fitting("b", 2048) == []
    assert rack.fitting("a", 5120) == []


def test_part_of_a_slice_takes_a_whole_one(make_pool) -> None:
    """Need is rounded up to slices."""
    rack = Rack(Snapshot(1, (make_pool("p", 1, "a"),), usable_hosts=("a",)))
    assert rack.fitting("a", 1)
    assert not rack.fitting("a", 1025)


def test_the_most_comfortable_pool_comes_first(make_pool) -> None:
    """A pool that keeps its buffer goes before one that would lose it."""
    pools = (make_pool("tight", 2, "a"), make_pool("roomy", 9, "a"))
    rack = Rack(Snapshot(1, pools, usable_hosts=("a",)))
    assert [pool.name for pool in rack.fitting("a", 1024)] == ["roomy", "tight"]


def test_comfort_counts_what_is_left(make_pool) -> None:
    """0 when nothing is left, 1 when twice the buffer is."""
    assert comfort(make_pool("p", 4, buffer=2), 4096) == 0
    assert comfort(make_pool("p", 6, buffer=2), 4096) == 0.5
    assert comfort(make_pool("p", 15, buffer=2), 4096) == 1


def test_refusals_say_why(make_pool) -> None:
    """Each way to fail has its own reason."""
    pools = (make_pool("p", 1, "a", "b"),)
    rack = Rack(Snapshot(1, pools, usable_hosts=("a", "c"), unusable_hosts={"b": "agent is down"}))
    assert rack.refusal("a", 2048) == "no pool has 2048 MiB free: p (up): 1024 MiB free"
    assert rack.refusal("b", 1024) == "host is unusable: agent is down"
    assert rack.refusal("c", 1024) == "host reaches no pool"
    assert rack.refusal("d", 1024) == "host has no pondstack-agent"
