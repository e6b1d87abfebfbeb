"""The generated trace has what its model says."""

import polars
import pytest

from pondstack.domain.errors import BadRequest
from pondstack.planner.traces import rows, synthetic
from pondstack.planner.traces.synthetic import Model, generate

MODEL = Model(servers=8_000, days=14)


@pytest.fixture(scope="module")
def servers() -> polars.DataFrame:
    """One trace for all tests."""
    return generate(MODEL, 1).trace.servers


def test_it_says_that_it_is_synthetic() -> None:
    found = generate(Model(servers=200, days=2), 5)
    assert found.trace.origin == "synthetic"
    assert found.notes[0].startswith("SYNTHETIC")
    assert "seed 5" in found.trace.name


def test_a_seed_makes_the_same_trace_and_another_one_another() -> None:
    small = Model(servers=200, days=2)
    assert generate(small, 1).trace.servers.equals(generate(small, 1).trace.servers)
    assert not generate(small, 1).trace.servers.equals(generate(small, 2).trace.servers)


def test_it_is_a_trace(servers: polars.DataFrame) -> None:
    assert servers.schema == dict(rows.SCHEMA)
    assert servers["start_seconds"].is_sorted()
    assert servers["start_seconds"][0] == 0
    within = servers.filter(polars.col("start_seconds") > 0)
    assert 0.8 * MODEL.servers < within.height < 1.2 * MODEL.servers
    assert servers.select((polars.col("end_seconds") > 14 * 86_400).sum()).item() == 0
    assert servers.select(polars.col("untouched_percent").is_between(0, 100).all()).item()


def test_a_cloud_is_there_from_the_beginning(servers: polars.DataFrame) -> None:
    """Its vCPUs neither fill from nothing nor drain."""

    def sold(at: int) -> float:
        alive = servers.filter(polars.col("start_seconds") <= at, polars.col("end_seconds").fill_null(1 << 40) > at)
        return float(alive["vcpus"].sum())

    assert 0.6 < sold(0) / sold(13 * 86_400) < 1.6


def test_days_are_busier_than_nights_and_weekends_are_quiet(servers: polars.DataFrame) -> None:
    hours = servers.filter(polars.col("start_seconds") > 0).select(
        hour=polars.col("start_seconds") // 3600 % 24, day=polars.col("start_seconds") // 86_400 % 7
    )
    by_day = hours.filter(polars.col("hour").is_between(11, 17)).height
    by_night = hours.filter(~polars.col("hour").is_between(4, 20)).height
    assert by_day > 1.5 * by_night
    weekend = hours.filter(polars.col("day") >= 5).height / 2
    assert weekend < 0.75 * hours.filter(polars.col("day") < 5).height / 5


def test_a_group_says_something_of_its_next_server(servers: polars.DataFrame) -> None:
    means = servers.with_columns(mean=polars.col("untouched_percent").mean().over("group"))
    between = means.select(polars.col("mean").var()).item()
    assert between > 0.3 * means.select(polars.col("untouched_percent").var()).item()
    assert 40 < servers["untouched_percent"].median() < 60


def test_most_servers_are_short_and_most_core_hours_are_of_long_ones(servers: polars.DataFrame) -> None:
    lived = servers.filter(polars.col("start_seconds") > 0).with_columns(
        seconds=polars.col("end_seconds").fill_null(14 * 86_400) - polars.col("start_seconds")
    )
    short = lived.filter(polars.col("seconds") < 86_400 // 2)
    hours = (polars.col("seconds") * polars.col("vcpus")).sum()
    assert short.height > 0.7 * lived.height
    assert short.select(hours).item() < 0.3 * lived.select(hours).item()


def test_a_model_of_nothing_is_refused() -> None:
    with pytest.raises(BadRequest, match="1 or more"):
        generate(Model(servers=0), 1)
    assert synthetic.ORIGIN == "synthetic"
