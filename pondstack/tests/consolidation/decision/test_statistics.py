"""Spreads and the local regression, against figures computed by hand."""

import pytest

from pondstack.consolidation.decision.statistics import (
    interquartile_range,
    median_absolute_deviation,
    tricube_line,
)


def test_the_median_absolute_deviation():
    """Median of 1, 1, 2, 2, 4, 6, 9 is 2; the distances are 1, 1, 0, 0, 2, 4, 7, and their median is 1."""
    assert median_absolute_deviation([1, 1, 2, 2, 4, 6, 9]) == 1


def test_the_interquartile_range():
    """Of 10, 20, 30, 40: the quartiles are at places 0.75 and 2.25, which are 17.5 and 32.5."""
    assert interquartile_range([40, 10, 30, 20]) == 15


def test_a_line_is_found_again():
    intercept, slope = tricube_line([12.0, 14.0, 16.0, 18.0, 20.0])
    assert (intercept, slope) == (pytest.approx(10.0), pytest.approx(2.0))


def test_the_newest_values_weigh_the_most():
    """Of 5 values the weights are 0, (1-27/64)^3, (1-1/8)^3, (1-1/64)^3, 1: by hand 0, .193, .670, .954, 1."""
    weights = [0.0, (37 / 64) ** 3, (7 / 8) ** 3, (63 / 64) ** 3, 1.0]
    values = [90.0, 10.0, 10.0, 30.0, 30.0]
    total = sum(weights)
    mean = sum(w * v for w, v in zip(weights, values, strict=True)) / total
    middle = sum(w * s for s, w in enumerate(weights, 1)) / total
    slope = sum(w * (s - middle) * (v - mean) for s, (w, v) in enumerate(zip(weights, values, strict=True), 1)) / sum(
        w * (s - middle) ** 2 for s, w in enumerate(weights, 1)
    )
    assert tricube_line(values) == (pytest.approx(mean - slope * middle), pytest.approx(slope))
    assert tricube_line([0.0, *values[1:]]) == pytest.approx(tricube_line(values))


@pytest.mark.parametrize(("values", "line"), [([7.0], (7.0, 0.0)), ([7.0, 9.0], (5.0, 2.0))])
def test_a_line_through_too_few_values(values, line):
    assert tricube_line(values) == line
