"""Shares become slices, and results a curve."""

import pytest

from pondstack.domain.share import untouched_mib
from pondstack.prediction.untouched import FEW, NEVER, SPREAD, Margins, Result, curve, less, result
from pondstack.prediction.untouched import Case as Whole


def Case(*values):
    return Whole(*values, spread=SPREAD)


@pytest.mark.parametrize(
    ("share", "memory_mib", "expected"),
    [(0.5, 8192, 4096), (0.49, 8192, 3072), (1.0, 8192, 7168), (0.9, 1024, 0), (-0.1, 8192, 0), (0.99, 1792, 1024)],
)
def test_it_is_rounded_down_to_slices_and_leaves_local_memory(share, memory_mib, expected):
    assert untouched_mib(share, memory_mib, 1024) == expected


def test_more_than_was_untouched_is_an_over_prediction():
    cases = [Case(0.5, 8192, 4096, True), Case(0.5, 8192, 4095, True), Case(0.9, 8192, 0, False)]
    got = result(cases, Margins(0.0, NEVER), 1024)
    assert (got.um, got.over) == (pytest.approx(100 / 3), 1)
    assert got.op == pytest.approx(100 / 3)
    assert got.op_bound == 50.0


@pytest.mark.parametrize(("over", "within"), [(2, True), (5, True), (6, False)])
def test_bad_luck_speaks_against_a_budget_only_when_it_is_rare(over, within):
    """Of 100 with 2 % each: 5 or more happen with 5.1 %, 6 or more with 1.5 %."""
    assert Result(100, 1, 1, over).within(2.0) is within


def test_a_curve_ascends_and_begins_with_nothing():
    cases = [Case(share / 40, 8192, 8192 * (share % 7) / 7, share % 2 == 0) for share in range(40)]
    points = curve(cases, 1024)
    assert (points[0].gain, points[0].loss) == (0.0, 0.0)
    assert [point.gain for point in points] == sorted({point.gain for point in points})
    assert [point.loss for point in points] == sorted({point.loss for point in points})


def test_a_margin_is_larger_for_small_instances_and_for_projects_that_vary():
    assert less(0.5, 0.1, 8192, SPREAD) == pytest.approx(0.35)
    assert less(0.5, 0.1, 4096, SPREAD) == pytest.approx(0.3)
    assert less(0.5, 0.1, 8192, 0.0) == pytest.approx(0.425)
    assert less(0.5, 0.1, 8192, 3 * SPREAD) == pytest.approx(0.2)


def test_a_few_cases_get_nothing():
    """What was hardly measured is not bet on, however well it went."""
    cases = [Case(0.9, 8192, 8192, True)] * 30 + [Case(0.9, 8192, 8192, False)] * (FEW - 1)
    assert {point.setting["cold"] for point in curve(cases, 1024)} == {NEVER}
    assert curve([*cases, cases[-1]], 1024)[-1].setting["cold"] < 0
