"""The least DRAM, by hand."""

import numpy as np

from pondstack.planner import dram
from pondstack.planner.cluster import Cluster, replay
from pondstack.planner.settings import Settings

GIB = 1024
ALTERNATING = [(100 * number, 100 * number + 90, 2, 4 * GIB if number % 2 else 2 * GIB) for number in range(20)]


def by_hand(**more) -> Settings:
    """Return settings without rejections, buffer or delay, in steps of 1 GiB, on sockets of 2 vCPUs."""
    none = {"buffer_least_slices": 0, "buffer_most_percent": 0, "offline_ms_per_gib": 0.0, "warmup_percent": 0.0}
    few = {"seeds": (1,), "rejected_percent": 0.0, "dram_step_mib": GIB, "vcpus_per_socket": 2}
    return Settings(**{**none, **few, **more})


def test_the_baseline_is_the_least_uniform_dram_with_the_same_rejections(make_history) -> None:
    """One socket, one server at a time, of 4 GiB at the most: 4 GiB, and not 3."""
    history = make_history(ALTERNATING)
    limit = dram.limit_of(history, by_hand())
    assert limit == 0
    found = dram.baseline(history, by_hand(), limit)
    assert found.mib_per_socket == 4 * GIB
    assert not found.outcome.rejected.any()


def test_rejections_for_want_of_vcpus_are_nobody_s_fault(make_history) -> None:
    """The second server has no vCPU anywhere: it may be rejected with a pool and without."""
    history = make_history([(0, 100, 2, GIB), (50, 100, 2, GIB)])
    assert dram.limit_of(history, by_hand()) == 1


def test_rejected_percent_is_granted_on_top(make_history) -> None:
    """10 % of 20 servers: two."""
    assert dram.limit_of(make_history(ALTERNATING), by_hand(rejected_percent=10.0)) == 2


def test_a_pool_evens_out_two_sockets(make_history) -> None:
    """On one socket always 5 GiB, on the other 1, by turns: 5 GiB each without a pool, 3 with one."""
    rows = []
    for number in range(10):
        rows += [
            (200 * number, 200 * number + 90, 2, 5 * GIB),
            (200 * number + 1, 200 * number + 90, 2, GIB),
            (200 * number + 100, 200 * number + 190, 2, GIB),
            (200 * number + 101, 200 * number + 190, 2, 5 * GIB),
        ]
    history = make_history(rows, sockets=2)
    settings = by_hand()
    limit = dram.limit_of(history, settings)
    assert dram.baseline(history, settings, limit).mib_per_socket == 5 * GIB
    pool_mib = np.where(history.memory_mib > GIB, 4 * GIB, 0).astype(np.int32)
    found = dram.pooled(history, pool_mib, 2, 4 / 6, settings, limit, 5 * GIB)
    assert found.mib_per_socket == 3 * GIB
    assert found.cluster.slices == [4]
    assert dram.effective_share(history, found.outcome, GIB) == dram.placed_share(history, pool_mib) == 4 / 6


def test_all_dram_of_a_cluster_is_counted() -> None:
    """Three sockets with 2 GiB, pools of two with 4 slices: the last pool has 2; 12 GiB over 3 sockets."""
    assert dram.mib_per_socket(Cluster(3, 2, 2 * GIB, 2, 4), GIB) == 4 * GIB


def test_shares_are_by_memory_and_time(make_history) -> None:
    """4 GiB for 10 s of which 2 are pooled, 4 GiB for 30 s of which none is: an eighth."""
    history = make_history([(0, 10, 1, 4 * GIB), (0, 30, 1, 4 * GIB)], last=30)
    assert dram.placed_share(history, np.array([2 * GIB, 0], np.int32)) == 0.125


def test_servers_that_were_rejected_do_not_count_as_pooled(make_history) -> None:
    """Nothing was placed: nothing is on the pool."""
    history = make_history([(0, 10, 1, 4 * GIB)])
    outcome = replay(history, np.array([2 * GIB], np.int32), Cluster(1, 1, GIB, 1, 2), by_hand())
    assert outcome.rejected.all()
    assert dram.effective_share(history, outcome, GIB) == 0.0


def test_the_buffer_is_sized_by_the_churn(make_history) -> None:
    """A slice takes 10 s to come back; within 10 s of a start two more starts take 2 slices each: 6 slices."""
    rows = [(1000 * burst + 3 * number, 1000 * burst + 500, 1, 3 * GIB) for burst in range(30) for number in range(3)]
    history = make_history(rows)
    settings = by_hand(vcpus_per_socket=8, buffer_most_percent=100, offline_ms_per_gib=5000.0)
    found = dram.buffer_of(history, np.full(len(rows), 2 * GIB, np.int32), 1, settings)
    assert (found.slices, found.give_back_seconds) == (6, 10.0)
