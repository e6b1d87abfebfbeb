"""Samples are read with care, made-up ones kept apart; runs of a workload are one, and what is unknown stays so."""

import json
import math
from dataclasses import replace

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.prediction.counters import COUNTERS
from pondstack.prediction.sample_generator import generate
from pondstack.prediction.sample_report import lines
from pondstack.prediction.samples import Step, dump, gather, parse, read, usable
from tests.fixtures import samples as fixture

ITEMS = list(generate(40, runs=2))
GOOD = json.loads(dump(ITEMS[0]))


def test_a_line_comes_back_as_it_was():
    assert parse(GOOD) == ITEMS[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sweep": [{"spill_percent": 50, "slowdown_percent": 1}]}, "spill_percent of 100"),
        ({"source": "guessed"}, "guessed"),
        ({"taken_at": "yesterday"}, "yesterday"),
        ({"counters": {COUNTERS[0]: "many"}}, "many"),
        ({"counters": [1]}, "no attribute"),
    ],
)
def test_a_bad_line_is_told_by_its_number(tmp_path, change, said):
    path = tmp_path / "samples.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n\n{json.dumps({**GOOD, **change})}\n")
    with pytest.raises(BadRequest, match=f"line 3: .*{said}"):
        list(read(path))


def test_a_line_without_its_label_is_told(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps({name: value for name, value in GOOD.items() if name != "workload"}))
    with pytest.raises(BadRequest, match="line 1: 'workload' is missing"):
        list(read(path))


def test_made_up_samples_are_wanted_or_left_out():
    measured = replace(ITEMS[0], source="measured")
    assert usable([*ITEMS, measured], synthetic=False) == [measured]
    assert len(usable(ITEMS, synthetic=True)) == 80
    with pytest.raises(BadRequest, match="80 samples are synthetic"):
        usable(ITEMS, synthetic=False)


def test_the_runs_of_a_workload_are_one():
    found = gather(ITEMS)
    assert len(found.workloads) == 40
    one, two = ITEMS[:2]
    assert one.workload == two.workload
    merged = next(item for item in found.workloads if item.name == one.workload)
    assert merged.slowdown == pytest.approx((one.slowdown_percent + two.slowdown_percent) / 2)
    assert merged.row[0] == pytest.approx((one.counters[COUNTERS[0]] + two.counters[COUNTERS[0]]) / 2)
    assert (found.sources, found.cpus) == ({"synthetic": 80}, ["made up"])


def test_a_counter_that_few_know_is_no_feature_and_who_lacks_one_is_left_out():
    def without(item, name):
        return replace(item, counters={key: value for key, value in item.counters.items() if key != name})

    single = list(generate(40))
    rare = [without(item, COUNTERS[3]) if place % 2 else item for place, item in enumerate(single)]
    found = gather([without(rare[0], COUNTERS[0]), *rare[1:]])
    assert COUNTERS[3] not in found.features
    assert (COUNTERS[0] in found.features, found.left_out, len(found.workloads)) == (True, 1, 39)
    assert not any(math.isnan(item.row[0]) for item in found.workloads)


def test_samples_without_any_counter_teach_nothing():
    blind = [replace(item, counters={}, missing={COUNTERS[0]: "this machine has no such counters"}) for item in ITEMS]
    with pytest.raises(BadRequest, match="no such counters"):
        gather(blind)


def test_the_generator_repeats_itself_and_says_that_it_is_one(tmp_path):
    assert list(generate(5, seed=3)) == list(generate(5, seed=3))
    assert list(generate(5, seed=3)) != list(generate(5, seed=4))
    assert all(set(item.counters) == set(COUNTERS) and item.source == "synthetic" for item in ITEMS)
    assert len(list(read(fixture.write(tmp_path / "samples.jsonl", 7)))) == 7


def test_the_report_is_loud_about_what_was_not_measured():
    told = "\n".join(lines(ITEMS))
    assert told.startswith("SYNTHETIC: 80 of 80 runs of 40 workloads")
    blind = replace(
        ITEMS[0],
        source="measured",
        cpu="a-6-1",
        sweep=[Step(0.0, 0.3), Step(100.0, 20.0)],
        missing={"pool_access_percent": "no events"},
    )
    told = lines([blind])
    assert told[0] == "measured: 1 runs of 1 workloads on a-6-1"
    assert [line.split() for line in told[2:4]] == [
        ["0", "0.3", "0.3", "0.3", "not", "measured"],
        ["100", "20.0", "20.0", "20.0", "not", "measured"],
    ]
    assert told[-1] == "not measured: pool_access_percent: no events"
