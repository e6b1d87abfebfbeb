"""The trace loader and the generator of the replay."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import trace

HEAD = "arrival_s,batch_id,cores,mem_gb,dur_bin,dur_lo_s,dur_hi_s,censored\n"
ROWS = "1800300,3,2,3.5,3,900,900,0\n1800000,1,8,14,1,300,600,0\n1800000,2,1,0.75,4,1200,1200,0\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "vm_requests.csv.gz"
    path.write_bytes(gzip.compress((HEAD + ROWS).encode()))
    return path


def test_requests_come_in_order_of_arrival_from_zero_on(path: Path) -> None:
    requests = trace.load(path, 3, seed=1)
    arrivals = [request.arrival_seconds for request in requests]
    assert arrivals == sorted(arrivals)
    assert arrivals[0] == 0.0
    assert {(request.vcpus, request.memory_mib) for request in requests} == {(2, 3584), (8, 14336), (1, 768)}


@given(seed=st.integers())
def test_what_the_trace_leaves_open_is_sampled_inside_its_bounds(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("trace") / "plain.csv"
    path.write_text(HEAD + ROWS)
    big = next(request for request in trace.load(path, 3, seed) if request.vcpus == 8)
    small = next(request for request in trace.load(path, 3, seed) if request.vcpus == 1)
    assert 300 <= big.lifetime_seconds <= 600
    assert small.lifetime_seconds == 1200
    assert abs(big.arrival_seconds - small.arrival_seconds) <= trace.BIN_SECONDS


def test_the_same_seed_gives_the_same_run(path: Path) -> None:
    assert trace.load(path, 3, seed=7) == trace.load(path, 3, seed=7)
    assert trace.load(path, 3, seed=7) != trace.load(path, 3, seed=8)
    assert trace.generate(200, seed=7) == trace.generate(200, seed=7)


def test_skip_leaves_the_first_rows_out(path: Path) -> None:
    (only,) = trace.load(path, 1, seed=1, skip=2)
    assert only.memory_mib == 768


def test_small_requests_can_be_left_out(path: Path) -> None:
    assert {request.memory_mib for request in trace.load(path, 2, seed=1, least_mib=3584)} == {3584, 14336}
    with pytest.raises(trace.BadTrace, match="2 requests of at least 3584 MiB"):
        trace.load(path, 3, seed=1, least_mib=3584)
    assert {request.memory_mib for request in trace.generate(200, seed=1, least_mib=14336)} == {14336, 57344}
    with pytest.raises(trace.BadTrace, match="LEAST_MIB"):
        trace.generate(1, seed=1, least_mib=1 << 20)


def test_too_few_rows_are_an_error(path: Path) -> None:
    with pytest.raises(trace.BadTrace, match="has 3 requests"):
        trace.load(path, 4, seed=1)


@pytest.mark.parametrize(
    "row", ["1800000,1,x,14,1,300,300,0", "1800000,1,8,14,1,600,300,0", "1800000,1,0,14,1,300,300,0", "1800000"]
)
def test_a_row_that_is_no_vm_names_its_line(tmp_path: Path, row: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(HEAD + ROWS + row + "\n")
    with pytest.raises(trace.BadTrace, match="line 5"):
        trace.load(path, 4, seed=1)


def test_the_generated_trace_has_the_shape_of_the_real_one() -> None:
    requests = trace.generate(20_000, seed=3)
    small = sum(request.memory_mib < 7168 for request in requests) / len(requests)
    assert 0.75 < small < 0.86
    hour = sum(request.lifetime_seconds <= 3600 for request in requests) / len(requests)
    assert 0.69 < hour < 0.77
    per_bin = len(requests) * trace.BIN_SECONDS / requests[-1].arrival_seconds
    assert 240 < per_bin < 280
    assert sum(weight for *_, weight in trace.SIZES) == pytest.approx(100)
    assert sum(weight for *_, weight in trace.LIFETIMES) == pytest.approx(100)


@given(count=st.integers(0, 50), seed=st.integers())
def test_the_generator_makes_as_many_as_asked(count: int, seed: int) -> None:
    assert len(trace.generate(count, seed)) == count
