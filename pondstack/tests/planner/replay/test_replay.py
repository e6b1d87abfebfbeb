"""Where servers go, what they get, and that nothing is given twice or lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pondstack.domain.free_buffer import FreeBuffer
from pondstack.planner.cluster import Cluster, Outcome, replay
from pondstack.planner.history import History
from pondstack.planner.settings import Settings

GIB = 1024


def mib(*values: int) -> np.ndarray:
    """Return pool shares by server."""
    return np.array(values, np.int32)


def test_a_server_goes_where_most_is_free_and_the_first_of_equals_wins(make_history, settings) -> None:
    """Nova spreads: the second server goes to the other socket, the third to the first again."""
    history = make_history([(0, 100, 1, GIB), (1, 100, 1, GIB), (2, 100, 1, GIB)])
    found = replay(history, mib(0, 0, 0), Cluster(2, 4, 4 * GIB), settings)
    assert found.socket.tolist() == [0, 1, 0]


def test_negative_multipliers_stack(make_history, settings) -> None:
    """As with Nova's own multipliers."""
    settings = Settings(seeds=(1,), cpu_weight_multiplier=-1.0, ram_weight_multiplier=-1.0)
    history = make_history([(0, 100, 1, GIB), (1, 100, 1, GIB), (2, 100, 1, GIB)])
    found = replay(history, mib(0, 0, 0), Cluster(2, 2, 4 * GIB), settings)
    assert found.socket.tolist() == [0, 0, 1]


def test_what_ends_is_free_in_the_same_second(make_history, settings) -> None:
    """A server that starts when another ends gets its place; one that starts a second earlier does not."""
    history = make_history([(0, 10, 2, GIB), (9, 20, 2, GIB), (10, 20, 2, GIB)])
    found = replay(history, mib(0, 0, 0), Cluster(1, 2, GIB), settings)
    assert found.socket.tolist() == [0, -1, 0]


def test_memory_of_the_pool_is_not_taken_from_the_socket(make_history, settings) -> None:
    """Two servers of 4 GiB fit on 4 GiB of local memory where each has 2 GiB on the pool."""
    history = make_history([(0, 100, 1, 4 * GIB), (1, 100, 1, 4 * GIB)])
    found = replay(history, mib(2 * GIB, 2 * GIB), Cluster(1, 4, 4 * GIB, 1, 4), settings)
    assert found.socket.tolist() == [0, 0]
    assert found.slices.tolist() == [2, 2]


def test_one_pool_serves_a_server_whole_or_not_at_all(make_history, settings) -> None:
    """3 slices are wanted, each of two pools has 2: it becomes all local, as production does, or is rejected."""
    history = make_history([(0, 100, 1, 4 * GIB)], sockets=2)
    found = replay(history, mib(3 * GIB), Cluster(2, 4, 4 * GIB, 1, 2), settings)
    assert (found.socket.tolist(), found.slices.tolist()) == ([0], [0])
    found = replay(history, mib(3 * GIB), Cluster(2, 4, 2 * GIB, 1, 2), settings)
    assert (found.socket.tolist(), found.slices.tolist()) == ([-1], [0])


def test_the_free_buffer_is_kept_back(make_history, settings) -> None:
    """Of 3 slices 1 is kept: the second server finds none, and its own memory has no room for it."""
    settings = Settings(seeds=(1,), buffer_least_slices=1, buffer_most_percent=100, offline_ms_per_gib=0.0)
    history = make_history([(0, 100, 1, 3 * GIB), (1, 100, 1, 2 * GIB)])
    cluster = Cluster(1, 4, 2 * GIB, 1, 3, FreeBuffer(1))
    found = replay(history, mib(2 * GIB, GIB), cluster, settings)
    assert found.socket.tolist() == [0, -1]
    assert found.buffer_slices == 1


def test_memory_that_goes_offline_is_not_there_yet(make_history) -> None:
    """2 slices at 5 s each: a start after 5 s finds one of them, one after 10 s both."""
    settings = Settings(seeds=(1,), buffer_least_slices=0, buffer_most_percent=0, offline_ms_per_gib=5000.0)
    for second, placed in ((9, False), (10, True)):
        history = make_history([(0, 1, 1, 2 * GIB + 1), (1 + second, 100, 1, 2 * GIB + 1)])
        found = replay(history, mib(2 * GIB, 2 * GIB), Cluster(1, 4, GIB, 1, 2), settings)
        assert (found.socket[1] >= 0) == placed


def test_speed_is_what_is_taken_over_the_time_since_it_was_given_back(make_history, settings) -> None:
    """2 GiB that were given back 4 s ago: 0.5 GiB/s. A first use needs none."""
    history = make_history([(0, 6, 1, 2 * GIB + 1), (10, 20, 1, 2 * GIB + 1)])
    found = replay(history, mib(2 * GIB, 2 * GIB), Cluster(1, 4, GIB, 1, 2), settings)
    assert found.speed.tolist() == [0.0, 0.5]


def test_the_last_pool_has_what_its_sockets_are_worth() -> None:
    """5 sockets in pools of 2: the third pool has one socket, and half the slices."""
    assert Cluster(5, 4, GIB, 2, 8).slices == [8, 8, 4]
    assert Cluster(5, 4, GIB).slices == []


def test_memory_is_stranded_where_no_vcpu_is_left(make_history, settings) -> None:
    """One of two sockets is full of vCPUs and has 3 of its 4 GiB free: 37.5 % of 8 GiB."""
    history = make_history([(0, 100, 2, GIB), (20, 30, 1, GIB)])
    found = replay(history, mib(0, 0), Cluster(2, 2, 4 * GIB), settings, np.array([10]))
    assert (found.sold_percent.tolist(), found.stranded_percent.tolist()) == ([50.0], [37.5])


servers = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 40), st.sampled_from([0.5, 1, 2, 4]), st.integers(1, 6 * GIB)),
    min_size=1,
    max_size=60,
)


@hypothesis_settings(max_examples=60, deadline=None)
@given(servers, st.integers(0, 100), st.integers(1, 3), st.integers(0, 6), st.sampled_from([0.0, 700.0]))
def test_no_socket_and_no_pool_ever_gives_more_than_it_has(rows, percent, size, slices, offline) -> None:
    """After each start, by what the outcome says of each server; and what all have given back can be taken again."""
    rows = sorted((start, start + lasts, cpu, memory) for start, lasts, cpu, memory in rows)
    history = _history(rows)
    pool_mib = np.array([(row[3] - 1) * percent // 100 // GIB * GIB for row in rows], np.int32)
    cluster = Cluster(3, 4, 4 * GIB, size, slices)
    found = replay(history, pool_mib, cluster, Settings(seeds=(1,), offline_ms_per_gib=offline))
    for number in range(len(rows)):
        _check(found, rows, number, cluster)
    rejected = [number for number in range(len(rows)) if found.socket[number] < 0]
    assert all(found.slices[number] == 0 for number in rejected)
    assert all(found.slices[number] in (0, pool_mib[number] // GIB) for number in range(len(rows)))


def _history(rows) -> History:
    zeros = np.zeros(len(rows))
    return History(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([round(row[2] * 1000) for row in rows], np.int32),
        np.array([row[3] for row in rows], np.int32),
        *(zeros for _ in range(7)),
        sockets=3,
        counted_from=0,
        last=1000,
    )


def _check(found: Outcome, rows, number: int, cluster: Cluster) -> None:
    now = rows[number][0]
    running = [other for other in range(number + 1) if rows[other][1] > now and found.socket[other] >= 0]
    for socket in range(cluster.sockets):
        mine = [other for other in running if found.socket[other] == socket]
        assert sum(rows[other][2] for other in mine) <= cluster.vcpus
        assert sum(rows[other][3] - int(found.slices[other]) * GIB for other in mine) <= cluster.local_mib
    for pool, total in enumerate(cluster.slices):
        mine = [other for other in running if found.socket[other] // cluster.pool_sockets == pool]
        assert sum(int(found.slices[other]) for other in mine) <= total


def test_every_slice_comes_back(make_history, settings) -> None:
    """A hundred servers in a row, each of which takes all slices of the pool, are all served."""
    history = make_history([(10 * number, 10 * number + 5, 1, 4 * GIB) for number in range(100)])
    found = replay(history, np.full(100, 3 * GIB, np.int32), Cluster(1, 1, GIB, 1, 3), settings)
    assert found.slices.tolist() == [3] * 100


@pytest.mark.parametrize("size", [0, 1])
def test_without_room_nobody_is_placed(make_history, settings, size) -> None:
    """A cluster without memory rejects."""
    history = make_history([(0, 1, 1, GIB)])
    assert replay(history, mib(0), Cluster(1, 1, 0, size, 0), settings).rejected.all()
