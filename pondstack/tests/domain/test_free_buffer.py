"""How many free slices are kept back: what starts take while memory comes back, within bounds, without flapping."""

import random

import pytest

from pondstack.domain.free_buffer import (
    UNSIZED,
    Bounds,
    Churn,
    FreeBuffer,
    Shrinking,
    Taken,
    bounded,
    covering,
    demand,
    needed,
    settle,
)
from tests.fixtures.seeds import seed


def starts(*items: tuple[float, int]) -> list[Taken]:
    return [Taken(at, slices) for at, slices in items]


def size(slices: int, **values) -> FreeBuffer:
    return FreeBuffer(slices, slices, **values)


def test_the_least_value_that_nineteen_of_twenty_do_not_exceed_covers_them():
    assert covering([]) is None
    assert covering([7.0]) == 7.0
    assert covering([*range(1, 21)]) == 19
    assert covering([*range(1, 41)]) == 38


def test_demand_is_what_is_taken_within_the_time_from_a_start():
    assert demand([], 10.0) == 0
    assert demand(starts((0, 2)), 10.0) == 2
    assert demand(starts((0, 2), (10, 3)), 10.0) == 5
    assert demand(starts((0, 2), (10.1, 3)), 10.0) == 3
    assert demand(starts((0, 1), (5, 1), (10, 1), (15, 1)), 10.0) == 3


def test_a_rare_burst_does_not_size_the_buffer():
    calm = [(100.0 * number, 1) for number in range(100)]
    assert demand(starts(*calm, (20000.0, 9), (20000.0, 9)), 10.0) == 1


def test_demand_is_that_of_counting_for_each_start():
    generator = random.Random(seed(20270114))
    for _ in range(200):
        taken = [Taken(at, generator.randint(1, 6)) for at in sorted(generator.uniform(0, 60) for _ in range(30))]
        seconds = generator.choice([0.0, 1.0, 7.5, 100.0])
        sums = [
            sum(other.slices for other in taken[number:] if other.at <= item.at + seconds)
            for number, item in enumerate(taken)
        ]
        assert demand(taken, seconds) == covering(sums)


def test_what_is_needed_rests_on_how_long_memory_needs_to_come_back():
    taken = starts((0, 2), (8, 2), (30, 2))
    assert needed(Churn(taken, [10.0])) == FreeBuffer(4, 4, 10.0, 3)
    assert needed(Churn(taken, [40.04])) == FreeBuffer(6, 6, 40.0, 3)
    assert needed(Churn(taken, [0.0])) == FreeBuffer(2, 2, 0.0, 3)


def test_where_nothing_came_back_nothing_is_needed():
    assert needed(Churn(starts((0, 2)), ())) == FreeBuffer(0, 0, None, 1)


@pytest.mark.parametrize(
    ("wanted", "least", "percent", "slices"),
    [(0, 1, 10, 1), (3, 1, 10, 3), (9, 1, 10, 6), (9, 8, 10, 8), (9, 4, 0, 4), (0, 0, 10, 0), (99, 0, 100, 64)],
)
def test_the_options_bound_the_size(wanted, least, percent, slices):
    assert bounded(size(wanted), Bounds(least, percent), 64) == FreeBuffer(slices, wanted)


def test_a_small_pool_keeps_the_least_whatever_is_needed():
    assert bounded(size(4), Bounds(1, 10), 8).slices == 1


def test_a_buffer_grows_at_once():
    assert settle(size(2), size(5), 600.0, Shrinking(0.0, 1), 10.0) == (size(5), None)


def test_a_buffer_shrinks_only_when_a_smaller_one_was_enough_for_long():
    present, shrinking = settle(size(5), size(2), 600.0, None, 100.0)
    assert (present, shrinking) == (FreeBuffer(5, 2), Shrinking(100.0, 2))
    present, shrinking = settle(present, size(3), 600.0, shrinking, 400.0)
    assert (present.slices, shrinking) == (5, Shrinking(100.0, 3))
    present, shrinking = settle(present, size(1), 600.0, shrinking, 699.9)
    assert present.slices == 5
    assert settle(present, size(1), 600.0, shrinking, 700.0) == (FreeBuffer(3, 1), None)


def test_a_peak_meanwhile_starts_the_time_anew():
    _, shrinking = settle(size(5), size(2), 600.0, None, 100.0)
    _, shrinking = settle(size(5), size(5), 600.0, shrinking, 650.0)
    assert settle(size(5), size(2), 600.0, shrinking, 710.0)[0].slices == 5


def test_a_record_of_another_release_is_read():
    assert FreeBuffer.from_record(None) == UNSIZED == FreeBuffer(slices=1)
    assert FreeBuffer.from_record({"slices": 4, "more": 1}) == FreeBuffer(slices=4)
    assert FreeBuffer.from_record(size(3, misses=2).to_record()) == size(3, misses=2)
