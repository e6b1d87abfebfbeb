"""Percentiles in bounded memory: right to an eighth."""

import math
import random

import pytest

from pondstack_rdma.store.latency import Latencies, bucket_of


def test_nothing_was_measured() -> None:
    seen = Latencies().percentiles()
    assert seen.count == 0
    assert math.isnan(seen.p50)
    assert math.isnan(seen.worst)


@pytest.mark.parametrize("seed", range(20181, 20191))
def test_percentiles_are_right_to_an_eighth(seed: int) -> None:
    dice = random.Random(seed)
    values = sorted(dice.lognormvariate(-9, 2) for _ in range(dice.randrange(1, 3000)))
    latencies = Latencies()
    for value in dice.sample(values, len(values)):
        latencies.record(value)
    seen = latencies.percentiles()
    for percent, told in ((50, seen.p50), (99, seen.p99)):
        exact = values[-(-len(values) * percent // 100) - 1]
        assert exact - 1e-9 <= told <= exact * 1.125 + 1e-9
    assert (seen.count, seen.worst) == (len(values), values[-1])


def test_buckets_rise_and_end() -> None:
    values = [*range(2000), *(2**power + delta for power in range(11, 80) for delta in (-1, 0, 1))]
    buckets = [bucket_of(value) for value in sorted(values)]
    assert buckets == sorted(buckets)
    assert buckets[:9] == list(range(9))
    assert buckets[-1] == 511


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 1e-12, 1e9])
def test_no_duration_breaks_it(seconds: float) -> None:
    latencies = Latencies()
    latencies.record(seconds)
    assert latencies.percentiles().count == 1
