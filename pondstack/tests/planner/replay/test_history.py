"""Histories drawn from a trace."""

from dataclasses import replace

import numpy as np
import polars
import pytest

from pondstack.planner.history import Sampler, assumptions, busy, peak
from pondstack.planner.settings import Settings
from pondstack.planner.trace import Trace


def make_trace(rows, groups=None, untouched=None, load=None, last=10_000) -> Trace:
    """Return a trace of (start, end, vCPUs, MiB)."""
    count = len(rows)
    servers = polars.DataFrame(
        {
            "start_seconds": [row[0] for row in rows],
            "end_seconds": [row[1] for row in rows],
            "vcpus": polars.Series([row[2] for row in rows], dtype=polars.Float32),
            "memory_mib": [row[3] for row in rows],
            "load_percent": polars.Series([load] * count, dtype=polars.Float32),
            "untouched_percent": polars.Series([untouched] * count, dtype=polars.Float32),
            "group": polars.Series(groups or [None] * count, dtype=polars.Utf8),
        }
    ).sort("start_seconds")
    return Trace("t", "csv", servers, last, ())


def test_whole_trace() -> None:
    """Each server once; an end that is unknown is never, one in the second of the start is a second later."""
    found = Sampler(make_trace([(0, None, 0.5, 1024), (5, 5, 2, 2048)]), Settings()).whole()
    assert found.cpu.tolist() == [500, 2000]
    assert found.end.tolist() == [2**62, 6]


def test_what_the_trace_tells_is_taken_and_what_it_does_not_is_drawn_and_said() -> None:
    """Columns without values get draws with the median and mean that the settings say."""
    rows = [(number, number + 50, 1, 1024) for number in range(4000)]
    told = Sampler(make_trace(rows, untouched=30.0, load=7.0), Settings()).whole()
    assert np.allclose(told.untouched, 0.3)
    assert np.allclose(told.load_percent, 7.0)
    settings = Settings(truly_untouched_percent=40.0, load_percent=10.0)
    drawn = Sampler(make_trace(rows), settings).whole()
    assert np.median(drawn.untouched) == pytest.approx(0.4, abs=0.03)
    assert drawn.load_percent.mean() == pytest.approx(10.0, abs=1.0)
    assert len(assumptions(make_trace(rows, untouched=30.0, load=7.0), settings)) == 1
    assert "4000 of 4000" in assumptions(make_trace(rows), settings)[0]


def test_a_seed_repeats_and_another_differs() -> None:
    """Reports are replayed by their seeds."""
    rows = [(10 * number, 10 * number + 500, 1, 1024) for number in range(200)]
    sampler = Sampler(make_trace(rows), Settings())
    one, again, other = sampler.history(1), sampler.history(1), sampler.history(2)
    assert np.array_equal(one.start, again.start)
    assert np.array_equal(one.untouched, again.untouched)
    assert not np.array_equal(one.start, other.start)
    assert np.all(np.diff(one.start) >= 0)


def test_groups_come_as_a_whole() -> None:
    """All servers of a group are drawn as often."""
    rows = [(number, number + 500, 1 + number % 7, 1024) for number in range(700)]
    groups = [f"g{number % 7}" for number in range(700)]
    found = Sampler(make_trace(rows, groups), Settings()).history(3)
    counts = [int((found.cpu == 1000 * (1 + group)).sum()) for group in range(7)]
    assert all(count % 100 == 0 for count in counts)
    assert len(set(counts)) > 1


def test_a_small_cluster_gets_a_part_of_a_great_cloud() -> None:
    """The peak of what is drawn fits a cluster of about so many sockets."""
    rows = [(number, number + 1000, 1, 1024) for number in range(20_000)]
    found = Sampler(make_trace(rows, last=20_000), Settings(sockets=10, vcpus_per_socket=10)).history(1)
    assert 7 <= found.sockets <= 13
    assert len(found.start) < 3000


def test_warm_up_counts_for_nothing() -> None:
    """The first fifth of the trace."""
    found = Sampler(make_trace([(0, 10, 1, 1), (1999, 2001, 1, 1), (2000, 2001, 1, 1)]), Settings()).whole()
    assert found.counted.tolist() == [False, False, True]


def test_peaks() -> None:
    """The brief peak of 5 is 0.5 % of the time; an end frees before a start of the same second."""
    start, end, amount = np.array([0, 0, 10]), np.array([10, 1000, 15]), np.array([2, 3, 2])
    assert peak(start, end, amount) == 5
    assert busy(np.array([0, 10]), np.array([1000, 15]), np.array([3, 2]), 0, 1000) == 3
    assert busy(np.array([0, 10]), np.array([1000, 110]), np.array([3, 2]), 0, 1000) == 5


def test_nothing_to_replay() -> None:
    """An empty trace is refused by name."""
    some = make_trace([(0, 1, 1, 1)])
    with pytest.raises(ValueError, match="trace t has no servers"):
        Sampler(replace(some, servers=some.servers.clear()), Settings())
