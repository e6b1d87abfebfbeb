"""Percentiles from counters: bounded, and at most an eighth too high."""

import random

from hypothesis import given
from hypothesis import strategies as st

from pondstack_agent.borrowing.latency import WINDOW_SECONDS, Latency, class_of, highest_of
from pondstack_agent.borrowing.link import backoff_seconds


@given(st.integers(0, 2**48))
def test_a_class_is_close(nanoseconds) -> None:
    highest = highest_of(class_of(nanoseconds))
    assert nanoseconds <= highest <= nanoseconds * 9 // 8 + 1


@given(st.integers(0, 2**60), st.integers(0, 2**60))
def test_classes_are_in_order(one, other) -> None:
    assert (class_of(one) <= class_of(other)) == (one <= other) or class_of(one) == class_of(other)


def test_percentiles() -> None:
    latency, dice = Latency(lambda: 0.0), random.Random(7)
    values = [dice.randrange(1_000, 100_000) for _ in range(10_000)]
    for value in values:
        latency.add(value)
    latency.add(5_000_000)
    figures, values = latency.figures(), sorted([*values, 5_000_000])
    for name, share in (("p50_us", 0.5), ("p99_us", 0.99)):
        true = values[int(len(values) * share)] / 1000
        assert true * 0.99 <= figures[name] <= true * 1.13
    assert (figures["accesses"], figures["max_us"]) == (10_001, 5_000)


def test_old_accesses_are_forgotten() -> None:
    now = [0.0]
    latency = Latency(lambda: now[0])
    latency.add(9_000)
    now[0] = WINDOW_SECONDS
    latency.add(1_000)
    assert (latency.figures()["accesses"], latency.figures()["max_us"]) == (2, 9.0)
    now[0] += WINDOW_SECONDS
    assert (latency.figures()["accesses"], latency.figures()["max_us"]) == (1, 1.0)
    now[0] += 5 * WINDOW_SECONDS
    assert latency.figures() == {"accesses": 0, "p50_us": 0.0, "p99_us": 0.0, "max_us": 0.0}


def test_the_wait_doubles_up_to_a_bound() -> None:
    assert [backoff_seconds(failures, 60.0) for failures in (0, 1, 2, 3, 8, 1000)] == [0.0, 0.5, 1.0, 2.0, 60.0, 60.0]
