"""Eq. 1 against brute force, on curves of all shapes."""

from hypothesis import given
from hypothesis import strategies as st

from pondstack.prediction.balance import OFF, Point, solve

percent = st.integers(0, 800).map(lambda eighths: eighths / 8)
"""Sums of these have no rounding: what is equal is equal."""
points = st.lists(st.builds(Point, percent, percent), max_size=12)


def monotone(curve: list[Point]) -> list[Point]:
    gains, losses = sorted(point.gain for point in curve), sorted(point.loss for point in curve)
    return [Point(gain, loss) for gain, loss in zip(gains, losses, strict=True)]


def brute_force(insensitive, untouched, budget):
    pairs = [
        (first.gain + second.gain, -(first.loss + second.loss))
        for first in [OFF, *insensitive]
        for second in [OFF, *untouched]
        if first.loss + second.loss <= budget
    ]
    return max(pairs)


@given(points, points, st.integers(0, 1600).map(lambda eighths: eighths / 8))
def test_it_is_exact_on_any_curves(insensitive, untouched, budget):
    found = solve(insensitive, untouched, budget)
    assert (found.gain, -found.loss) == brute_force(insensitive, untouched, budget)
    assert found.loss <= budget


@given(points.map(monotone), points.map(monotone), percent)
def test_it_is_exact_on_monotone_curves(insensitive, untouched, budget):
    found = solve(insensitive, untouched, budget)
    assert (found.gain, -found.loss) == brute_force(insensitive, untouched, budget)


def test_the_budget_itself_is_within_it():
    assert solve([], [Point(20.0, 2.0)], 2.0).gain == 20.0
    assert solve([], [Point(20.0, 2.0)], 1.999).gain == 0.0


def test_a_smaller_gain_of_one_model_may_leave_more_for_the_other():
    found = solve([Point(10.0, 1.0), Point(12.0, 2.0)], [Point(5.0, 0.0), Point(20.0, 1.0)], 2.0)
    assert (found.insensitive.gain, found.untouched.gain) == (10.0, 20.0)
