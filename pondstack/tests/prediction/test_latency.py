"""A threshold on predicted slowdown becomes a curve of insensitive workloads against false positives."""

import math

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.prediction.balance import OFF, solve
from pondstack.prediction.counters import COUNTERS, UnknownCounter, row_of, selected, unknown
from pondstack.prediction.latency import FEW, Case, curves, load, mark, points, points_of

ASCENDING = [Case(float(place), float(place)) for place in range(100)]


def test_a_marked_workload_beyond_the_pdm_is_a_false_positive():
    got = mark([Case(1.0, 2.0), Case(2.0, 9.0), Case(3.0, 0.0), Case(9.0, 20.0)], 3.0, 5.0)
    assert (got.marked, got.wrong) == (3, 1)
    assert (got.li, got.fp, got.fp_bound) == (75.0, 25.0, 40.0)


def test_a_perfect_model_marks_what_is_within_the_pdm():
    best = solve(points(ASCENDING, 5.0), [], 1.0).insensitive
    assert (best.gain, best.setting["threshold"], best.setting["measured_fp"]) == (6.0, 5.0, 0.0)


def test_few_workloads_are_not_bet_on():
    """However well it went: of 40 without a false positive the next one may be one with 1 of 41."""
    assert points(ASCENDING[: FEW - 1], 50.0) == []
    forty = [Case(0.0, 0.0)] * 40
    assert solve(points(forty, 5.0), [], 2.0).insensitive == OFF
    assert solve(points(forty, 5.0), [], 2.5).insensitive.gain == 100.0


def test_a_curve_ascends_and_equal_predictions_go_together():
    cases = [Case(float(place % 7), float(place % 11)) for place in range(77)]
    found = points(cases, 5.0)
    assert [point.loss for point in found] == sorted({point.loss for point in found})
    assert [point.gain for point in found] == sorted({point.gain for point in found})
    assert found[-1].gain == 100.0


def test_a_pdm_between_two_takes_the_stricter_curve():
    manifest = {"curves": curves(ASCENDING)}
    assert points_of(manifest, 6) == points(ASCENDING, 5.0)
    assert points_of(manifest, 100) == points(ASCENDING, 50.0)
    assert points_of(manifest, 0.5) == []


def test_a_counter_that_was_not_measured_is_unknown():
    row = row_of({COUNTERS[0]: 0.0, COUNTERS[1]: None, "strange": 1.0})
    assert row[0] == 0.0
    assert math.isnan(row[1])
    assert unknown(COUNTERS[:2], row) == [COUNTERS[1]]
    assert selected(COUNTERS[:1], [row]) == [[0.0]]
    with pytest.raises(UnknownCounter, match=COUNTERS[1]):
        selected(COUNTERS[:2], [row])


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ({"kind": "um"}, "kind 'um'"),
        ({"kind": "li", "features": ["made_up"]}, "made_up"),
        ({"kind": "li", "features": []}, "none"),
        ({"kind": "li", "features": [COUNTERS[0]], "predictor": "oracle"}, "oracle"),
    ],
)
def test_another_model_is_refused(manifest, said):
    with pytest.raises(BadRequest, match=said):
        load(manifest, b"")
