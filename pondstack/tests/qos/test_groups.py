"""The report of both groups: sizes, means, the difference and its interval."""

import random

import pytest

from pondstack.ledger.qos_records import Performance
from pondstack.qos.groups import LEAST_INSTANCES, bootstrap, compare


def figures(source, values, metric="p99_ms", higher=False):
    return [
        Performance(f"{source}-{at}", metric, higher, 3, value, value, 0.0, source) for at, value in enumerate(values)
    ]


def test_the_difference_is_in_percent_of_the_control_group():
    (found,) = compare([*figures("control", [10.0] * 6), *figures("untouched", [11.0] * 6)], 1)
    assert (found.control_instances, found.predicted_instances) == (6, 6)
    assert (found.control_mean, found.predicted_mean, found.difference_percent) == (10.0, 11.0, 10.0)
    assert (found.low_percent, found.high_percent) == (10.0, 10.0)


def test_few_have_no_interval_and_one_group_alone_no_difference():
    few = [*figures("control", [10.0] * (LEAST_INSTANCES - 1)), *figures("static", [11.0] * 9)]
    assert compare(few, 1)[0].low_percent is None
    assert compare(few, 1)[0].difference_percent == pytest.approx(10.0)
    assert compare(figures("static", [1.0] * 9), 1)[0].difference_percent is None
    assert compare([*figures("control", [0.0] * 9), *figures("static", [1.0] * 9)], 1)[0].difference_percent is None


def test_others_are_in_neither_group():
    assert compare(figures("fixed", [1.0] * 9) + figures("timeout", [1.0] * 9) + figures("", [1.0]), 1) == []


def test_metrics_are_compared_each_by_itself():
    items = [
        *figures("control", [1.0]),
        *figures("control", [1.0], "qps", True),
        *figures("static", [2.0], "qps", True),
    ]
    assert [(item.metric, item.control_instances, item.predicted_instances) for item in compare(items, 1)] == [
        ("p99_ms", 1, 0),
        ("qps", 1, 1),
    ]


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """200 draws of two groups with a true difference of 10 %: 95 % intervals hold it in 90 to 99 % of them."""
    source, held, rounds = random.Random(7), 0, 200
    for seed in range(rounds):
        control = [source.gauss(100.0, 10.0) for _ in range(30)]
        other = [source.gauss(110.0, 10.0) for _ in range(30)]
        low, high = bootstrap(control, other, seed, 200)
        held += low <= 10.0 <= high
    assert 0.88 * rounds <= held <= 0.99 * rounds


def test_the_same_seed_says_the_same():
    groups = [1.0, 2.0, 4.0, 8.0, 3.0], [2.0, 2.0, 5.0, 9.0, 1.0]
    assert bootstrap(*groups, 5, 100) == bootstrap(*groups, 5, 100) != bootstrap(*groups, 6, 100)
