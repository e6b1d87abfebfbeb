"""GWA-T-12 Bitbrains, on small files in its form."""

from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped
from pondstack.planner.traces import bitbrains
from pondstack.planner.traces.imported import Options

HEAD = ";\t".join(f"column {number}" for number in range(11))


def vm(folder: Path, name: str, *rows: tuple[float, ...], more: str = "") -> None:
    """Write a VM: (seconds, load, MiB used) for each row; it has 2 cores and 4 GiB."""
    lines = [
        f"{at};\t2;\t5000.0;\t90.0;\t{load};\t{4 << 20};\t{used * 1024};\t0;\t0;\t0;\t0" for at, load, used in rows
    ]
    (folder / f"{name}.csv").write_text("\n".join([HEAD, *lines, more]).rstrip("\n") + "\n")


def test_a_folder_of_vms(tmp_path: Path) -> None:
    vm(tmp_path, "1", (1000, 10.0, 1024), (1300, 30.0, 512), (1601, 20.0, 0))
    vm(tmp_path, "2", (1300, 50.0, 9000))
    found = bitbrains.read(tmp_path, Options("mine"))
    assert found.trace.servers.rows() == [
        (0, None, 2.0, 4096, 20.0, 75.0, None),
        (300, 600, 2.0, 4096, 50.0, 0.0, None),
    ]
    assert (found.trace.origin, found.rows, found.trace.dropped) == ("bitbrains", 4, ())
    assert found.trace.end_of_trace_seconds == 901
    assert "upper bound" in found.notes[0]


def test_measurements_that_are_none_are_counted_with_their_file(tmp_path: Path) -> None:
    vm(tmp_path, "1", (1000, 10.0, 1024))
    vm(tmp_path, "2", (1000, 50.0, 9), more="1300;\t2;\t5000\nx;\t2;\t5;\t9;\t1;\t4;\t4;\t0;\t0;\t0;\t0")
    found = bitbrains.read(tmp_path, Options("mine"))
    assert found.trace.servers.height == 2
    reason = "measurements without time, cores, load or memory (in 2.csv)"
    assert found.trace.dropped == (Dropped(reason, 2, 3),)


def test_a_vm_without_memory_is_dropped_by_the_number_of_its_file(tmp_path: Path) -> None:
    vm(tmp_path, "1", (1000, 10.0, 1024))
    vm(tmp_path, "2", (1000, 50.0, 9))
    path = tmp_path / "2.csv"
    path.write_text(path.read_text().replace(str(4 << 20), "0"))
    found = bitbrains.read(tmp_path, Options("mine"))
    assert found.trace.dropped == (Dropped("memory_mib is not from 1 to 1099511627776", 1, 2),)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="a CSV file for each VM"):
        bitbrains.read(tmp_path, Options("mine"))
    (tmp_path / "1.csv").write_bytes(b"\xff\xfe\n1;2\n")
    with pytest.raises(BadRequest, match=r"1\.csv, line 1"):
        bitbrains.read(tmp_path, Options("mine"))
    (tmp_path / "1.csv").write_text(f"{HEAD}\n")
    with pytest.raises(BadRequest, match="none of its 0 rows"):
        bitbrains.read(tmp_path, Options("mine"))


HOURLY = """\
month,vm_file,epoch_hour,cores,cpu_mean_pct,cpu_max_pct,mem_cap_mb,mem_used_mean_mb,mem_used_max_mb,n_samples
7,1,3600,2,10,20,8000,100,2000,12
7,1,7200,2,30,40,8000,100,4000,12
7,2,3600,1,5,5,4000,100,1000,12
8,1,7200,4,5,5,1000,0,0,12
8,1,soon,4,5,5,1000,0,0,12
"""


def test_the_hourly_file(tmp_path: Path) -> None:
    path = tmp_path / "hours.csv"
    path.write_text(HOURLY)
    found = bitbrains.read_hourly(path, Options("mine"))
    assert found.trace.servers.rows() == [
        (0, None, 2.0, 8000, 20.0, 50.0, None),
        (0, 3600, 1.0, 4000, 5.0, 75.0, None),
        (3600, None, 4.0, 1000, 5.0, 100.0, None),
    ]
    reason = "measurements without time, cores, load or memory (in hours.csv)"
    assert found.trace.dropped == (Dropped(reason, 1, 6),)
    assert found.trace.end_of_trace_seconds == 7200
