"""Azure's public formats, on small files in their form."""

import gzip
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped
from pondstack.planner.traces import azure_requests, azure_vmtable
from pondstack.planner.traces.imported import Options

V1 = """\
x/XsOfHO,subscription+long/one,dep,0,2591700,99.36,3.42,10.19,Delay-insensitive,1,1.75
H5CxmMoV,subscription+long/one,dep,0,424500,37.87,3.32,37.87,Interactive,1,0.75
wR/G1YUj,other,dep,1133100,1133700,0.30,0.23,0.30,Unknown,16,112
1XiU+Kpp,other,dep,1133100,1133700,0.30,0.23
H5CxmMoV,other,dep,10,20,0.30,0.23,0.30,Unknown,1,1.75
"""


def test_a_vmtable_of_v1(tmp_path: Path) -> None:
    path = tmp_path / "vmtable.csv.gz"
    path.write_bytes(gzip.compress(V1.encode()))
    found = azure_vmtable.v1(path, Options(""))
    assert found.trace.origin == "azure-v1"
    assert found.trace.end_of_trace_seconds == 2_591_700
    rows = [(row[0], row[1], row[2], row[3], round(row[4], 2), *row[5:]) for row in found.trace.servers.rows()]
    assert rows == [
        (0, None, 1.0, 1792, 3.42, None, "subscription"),
        (0, 424_500, 1.0, 768, 3.32, None, "subscription"),
        (1_133_100, 1_133_700, 16.0, 114_688, 0.23, None, "other"),
    ]
    assert found.trace.dropped == (
        Dropped("it has another number of fields", 1, 4),
        Dropped("its id is that of a row before it", 1, 5),
    )


def test_buckets_of_v2_count_as_their_bounds_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "vmtable.csv"
    path.write_text("a,s,d,0,300,9,5,7,Unknown,>24,>64\nb,s,d,0,300,9,5,7,Unknown,4,32\n")
    found = azure_vmtable.v2(path, Options(""))
    assert [row[2:4] for row in found.trace.servers.rows()] == [(30.0, 71_680), (4.0, 32_768)]
    assert ">24 cores count as 30" in found.notes[0]
    # V1 has no buckets: such a file is not taken for one.
    assert azure_vmtable.v1(path, Options("")).trace.dropped == (Dropped("vcpus is not over 0 and up to 65536", 1, 1),)


REQUESTS = """\
arrival_s,batch_id,cores,mem_gb,dur_bin,dur_lo_s,dur_hi_s,censored
1800000,1,8,14,1,300,300,0
1800000,2,1,0.75,37,1200,2400,1
1800300,3,2,3.5,3,900,600,0
1803000,3,2,3.5,3,900,,0
1803000,4,2,3.5,3,900,900,0
1803300,4,2,3.5,3,0,0,0
"""


def requests(folder: Path) -> Path:
    """Return the file."""
    path = folder / "vm_requests.csv"
    path.write_text(REQUESTS)
    return path


def test_requests_are_drawn_from_within_their_bounds(tmp_path: Path) -> None:
    found = azure_requests.read(requests(tmp_path), Options("", seed=3))
    servers = {row[6]: row for row in found.trace.servers.rows()}
    first, censored = servers["1"], servers["2"]
    assert first[2:4] == (8.0, 14_336)
    assert 299 <= first[1] - first[0] <= 302
    assert censored[1] is None
    assert abs(first[0] - censored[0]) <= 300
    assert found.trace.dropped == (Dropped("dur_lo_s and dur_hi_s are no bounds of a lifetime", 2, 4),)
    # The trace ends with the bin of the last arrivals: what ends later still runs.
    assert 3300 <= found.trace.end_of_trace_seconds <= 3600
    assert "seed 3" in found.notes[0]


def test_a_seed_draws_the_same_and_another_one_something_else(tmp_path: Path) -> None:
    path = requests(tmp_path)
    one, same, other = (azure_requests.read(path, Options("", seed=seed)).trace.servers for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)


def test_requests_without_their_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "vm_requests.csv"
    path.write_text("arrival_s,cores,mem_gb\n1,1,1\n")
    with pytest.raises(BadRequest, match="has no column dur_lo_s, dur_hi_s"):
        azure_requests.read(path, Options(""))
