"""A project's size is insensitive by the counters of enough of its instances; what is not known says nothing."""

import pytest

from pondstack.domain.history import GuestCounters
from pondstack.domain.telemetry import Metric, Source
from pondstack.prediction import sensitivity

DRAM = str(Metric.DRAM_BOUND_PERCENT)


class HalfOfDram:
    features = (DRAM,)

    def slowdowns(self, rows):
        from pondstack.prediction.counters import selected

        return [row[0] / 2 for row in selected(self.features, rows)]


def guests(*dram, project="p", memory_mib=8192):
    return [
        GuestCounters(
            f"{project}-{memory_mib}-{number}", project, memory_mib, 4, {} if value is None else {DRAM: value}
        )
        for number, value in enumerate(dram)
    ]


def table(*items):
    return sensitivity.table("li-1", items, sensitivity.slowdowns(HalfOfDram(), items))["projects"]


def test_the_worst_of_a_few_counts_and_of_many_the_95th_percentile():
    assert table(*guests(2, 2, 2, 2, 9)) == {"p": {"8192/4": [4.5, 5]}}
    assert table(*guests(*[2] * 19, 9)) == {"p": {"8192/4": [1.0, 20]}}
    assert table(*guests(*[2] * 18, 9, 9)) == {"p": {"8192/4": [4.5, 20]}}


@pytest.mark.parametrize("dram", [(2, 2, 2, 2), (2, 2, 2, 2, None), (2,) * 5 + (None,) * 6])
def test_too_few_that_say_something_are_no_history(dram):
    assert table(*guests(*dram)) == {}


def test_half_of_them_are_enough():
    assert table(*guests(2, 2, 2, 2, 2, None, None, None, None, None)) == {"p": {"8192/4": [1.0, 5]}}


def test_sizes_and_projects_are_told_apart():
    items = [*guests(*[2] * 5), *guests(*[4] * 5, memory_mib=4096), *guests(*[6] * 5, project="q")]
    assert table(*items) == {"p": {"8192/4": [1.0, 5], "4096/4": [2.0, 5]}, "q": {"8192/4": [3.0, 5]}}


def test_a_missing_counter_is_never_zero():
    assert sensitivity.slowdowns(HalfOfDram(), guests(None, 3.0)) == {"p-8192-1": 1.5}


def test_made_up_counters_count_for_a_model_of_made_up_samples_only():
    real, made_up = GuestCounters("a", "p", 1, 1), GuestCounters("b", "p", 1, 1, source=Source.SYNTHETIC)
    assert sensitivity.usable([real, made_up], {"source": "measured"}) == [real]
    assert sensitivity.usable([real, made_up], {"source": "synthetic"}) == [real, made_up]
    assert sensitivity.usable([real, made_up], {"data": {"lifetimes": {"measured": 3}}}) == [real]
