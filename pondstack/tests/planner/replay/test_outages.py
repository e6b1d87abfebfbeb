"""Failures of hosts and pools in a replay: whom they end, where those start again, and what is out of use meanwhile."""

from collections.abc import Sequence
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pondstack.planner import cluster as clusters
from pondstack.planner.blast_radius import BlastRadius, blast_radius, interruptions
from pondstack.planner.cluster import Cluster, Outcome, replay
from pondstack.planner.history import History
from pondstack.planner.replay.outages import YEAR_SECONDS, outages_of
from pondstack.planner.replay.state import Outages
from pondstack.planner.settings import Settings

GIB = 1024
HOST, POOL = "host", "pool"
Event = tuple[int, str, int, bool]
"""When, of what, its number, and whether it fails; else it is repaired."""


def run(history: History, pool_mib: Sequence[int], cluster: Cluster, settings: Settings, *events: Event) -> Outcome:
    """Replay with these outages."""
    numbers = {kind: [number if kind == what else -1 for _, what, number, _ in events] for kind in (HOST, POOL)}
    outages = Outages(
        np.array([event[0] for event in events], np.int64),
        np.array(numbers[HOST], np.int32),
        np.array(numbers[POOL], np.int32),
        np.array([event[3] for event in events], np.bool_),
    )
    with mock.patch.object(clusters, "outages_of", return_value=outages):
        return replay(history, np.array(pool_mib, np.int32), cluster, settings)


def test_a_hosts_failure_ends_its_servers_and_they_start_elsewhere(make_history, settings) -> None:
    """The first is on socket 0, which fails; until its repair nobody starts there."""
    history = make_history([(0, 100, 1, GIB), (1, 100, 1, GIB), (60, 100, 1, GIB), (80, 100, 1, GIB)])
    events = (50, HOST, 0, True), (70, HOST, 0, False)
    found = run(history, [0] * 4, Cluster(2, 4, 4 * GIB), settings, *events)
    assert (found.socket.tolist(), found.restarts.tolist()) == ([1, 1, 1, 0], [1, 0, 0, 0])


def test_what_finds_no_host_again_is_rejected(make_history, settings) -> None:
    """The other socket has room for none, and is none the worse for it; who has ended before is left alone."""
    history = make_history([(0, 100, 2, GIB), (1, 100, 2, GIB), (2, 40, 0.5, 0), (60, 100, 2, GIB)])
    events = (50, HOST, 0, True), (55, HOST, 0, False)
    found = run(history, [0] * 4, Cluster(2, 2.5, 4 * GIB), settings, *events)
    assert found.rejected.tolist() == [True, False, False, False]
    assert found.restarts.tolist() == [1, 0, 0, 0]
    assert found.socket.tolist()[3] == 0, "a host that is repaired is empty"


def test_a_pools_failure_ends_those_with_memory_there(make_history, settings) -> None:
    """Pond, section 4.2: others of the same host go on; who is ended starts again all local, or with another pool."""
    history = make_history([(0, 100, 1, 2 * GIB), (1, 100, 1, 2 * GIB), (2, 100, 1, 2 * GIB)])
    wanted = [GIB, GIB, 0]
    one = run(history, wanted, Cluster(2, 4, 6 * GIB, 2, 2), settings, (50, POOL, 0, True))
    assert (one.restarts.tolist(), one.slices.tolist()) == ([1, 1, 0], [0, 0, 0])
    two = run(history, wanted, Cluster(2, 4, 6 * GIB, 1, 2), settings, (50, POOL, 0, True))
    assert (two.restarts.tolist(), two.slices.tolist(), two.socket.tolist()[:2]) == ([1, 0, 0], [1, 1, 0], [1, 1])


def test_a_pool_that_is_repaired_has_all_its_slices(make_history, settings) -> None:
    """Who starts meanwhile gets none of it."""
    history = make_history([(0, 200, 1, 4 * GIB), (60, 90, 1, 4 * GIB), (100, 200, 1, 4 * GIB)])
    events = (50, POOL, 0, True), (95, POOL, 0, False)
    found = run(history, [3 * GIB] * 3, Cluster(1, 4, 9 * GIB, 1, 3), settings, *events)
    assert (found.slices.tolist(), found.restarts.tolist()) == ([0, 0, 3], [1, 0, 0])


def test_who_restarts_asks_for_the_greater_speed(make_history, settings) -> None:
    """Its slices were given back in the second in which its host failed."""
    history = make_history([(0, 100, 1, 2 * GIB)])
    found = run(history, [GIB], Cluster(2, 4, 4 * GIB, 2, 1), settings, (50, HOST, 0, True))
    assert (found.socket.tolist(), found.slices.tolist(), found.speed.tolist()) == ([1], [1], [1.0])


def test_what_fails_after_the_last_start_counts(make_history, settings) -> None:
    history = make_history([(0, 100, 1, GIB)])
    events = (50, HOST, 0, True), (60, HOST, 0, False), (70, HOST, 1, True), (120, HOST, 0, True)
    found = run(history, [0], Cluster(2, 4, 4 * GIB), settings, *events)
    assert (found.restarts.tolist(), found.socket.tolist()) == ([2], [0])


servers = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 40), st.sampled_from([0.5, 1, 2]), st.integers(1, 5 * GIB)),
    min_size=1,
    max_size=40,
)
outages = st.lists(
    st.tuples(st.integers(0, 90), st.sampled_from([(HOST, 0), (HOST, 1), (HOST, 2), (POOL, 0)])), max_size=6
)


@hypothesis_settings(max_examples=60, deadline=None)
@given(servers, outages, st.integers(0, 6), st.integers(1, 30))
def test_nothing_is_lost_or_given_twice(rows, fails, slices, repair) -> None:
    """After the last start every socket and pool has what its servers have left, and none runs on what is out."""
    rows = sorted((start, start + lasts, cpu, memory) for start, lasts, cpu, memory in rows)
    history = _history(rows)
    events = sorted((at + late, *what, not late) for at, what in fails for late in (0, repair))
    pool_mib = [(row[3] - 1) // (2 * GIB) * GIB for row in rows]
    whole = Cluster(3, 4, 4 * GIB, 3, slices)
    last = max(row[0] for row in rows)
    seen = [event for event in events if event[0] <= last]
    found = run(history, pool_mib, whole, Settings(seeds=(1,)), *seen)
    running = [n for n, row in enumerate(rows) if row[1] > last and found.socket[n] >= 0]
    for socket in range(3):
        mine = [n for n in running if found.socket[n] == socket]
        assert sum(rows[n][2] for n in mine) <= 4
        assert sum(rows[n][3] - int(found.slices[n]) * GIB for n in mine) <= 4 * GIB
    assert sum(int(found.slices[n]) for n in running) <= slices
    states = {(kind, number): out for _, kind, number, out in seen}
    assert not [n for n in running if states.get((HOST, int(found.socket[n])))]
    assert not [n for n in running if found.slices[n] and states.get((POOL, 0))]
    after = run(
        _history([*rows, *[(500, 600, 4, 4 * GIB)] * 3]), [*pool_mib, 0, 0, 0], whole, Settings(seeds=(1,)), *events
    )
    assert sorted(after.socket.tolist()[-3:]) == [0, 1, 2], "all that was taken is there again"


def _history(rows) -> History:
    zeros = np.zeros(len(rows))
    columns = [np.array([row[n] for row in rows], np.int64) for n in (0, 1)]
    cpu, memory = (np.array([row[n] * scale for row in rows], np.int32) for n, scale in ((2, 1000), (3, 1)))
    return History(*columns, cpu, memory, *(zeros for _ in range(7)), sockets=3, counted_from=0, last=1000)


CENTURY = int(YEAR_SECONDS), int(100 * YEAR_SECONDS)
"""All but its first year."""


def test_as_many_fail_as_the_rates_say() -> None:
    """10 hosts at 0.2 a year and 2 pools at 0.5 a year, in 99 years: 198 and 99, give or take four deviations."""
    rates = Settings(seeds=(1,), host_failures_per_year=0.2, pool_failures_per_year=0.5, repair_hours=48.0)
    found = outages_of(1, CENTURY, 10, 2, rates)
    assert abs(int((found.fails & (found.socket >= 0)).sum()) - 198) < 57
    assert abs(int((found.fails & (found.pool >= 0)).sum()) - 99) < 40
    assert np.all(np.diff(found.at) >= 0)
    assert found.at[0] > CENTURY[0]
    for kind, count in (("socket", 10), ("pool", 2)):
        for number in range(count):
            mine = getattr(found, kind) == number
            assert found.fails[mine].tolist() == [True, False] * (mine.sum() // 2), "each failure has its repair"
            assert set(np.diff(found.at[mine])[::2].tolist()) == {48 * 3600}


def test_hosts_fail_alike_with_pools_and_without_and_by_the_seed() -> None:
    rates = Settings(seeds=(1,), host_failures_per_year=0.2, pool_failures_per_year=0.5)
    with_pools, without = outages_of(1, CENTURY, 10, 2, rates), outages_of(1, CENTURY, 10, 0, rates)
    assert with_pools.at[with_pools.socket >= 0].tolist() == without.at.tolist()
    assert outages_of(9, CENTURY, 10, 0, rates).at.tolist() != without.at.tolist()
    assert len(outages_of(1, CENTURY, 10, 2, Settings(seeds=(1,))).at) == 0


def test_what_a_failure_reaches(make_history, settings) -> None:
    """Of 100 s, half counts: two servers all of it, one with pool memory half of it, one that was rejected."""
    history = make_history(
        [(0, 200, 1, 2 * GIB)] * 2 + [(0, 75, 1, 2 * GIB), (0, 100, 1, 99 * GIB)], counted_from=50, last=100
    )
    cluster = Cluster(4, 4, 8 * GIB, 2, 4)
    found = replay(history, np.array([0, 0, GIB, 0], np.int32), cluster, settings)
    assert blast_radius(history, found, cluster) == BlastRadius(2.5 / 4, 0.5 / 2, 20.0)
    assert interruptions(0.05, 0.02, 20.0) == pytest.approx(50 + 4)
