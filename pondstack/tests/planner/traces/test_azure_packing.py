"""Azure's trace for packing, on a small database in its form."""

import sqlite3
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped
from pondstack.planner.traces import azure_packing
from pondstack.planner.traces.imported import Imported, Options

DAY = 86_400
GOOD = [(1, 7, 10, 0, -3.5, 0.5), (2, 7, 11, 0, 0.25, None), (3, 8, 10, 1, 1.0, 89.0)]


def database(folder: Path, *vms: tuple[object, ...]) -> Path:
    """Write one with two types, the first of which runs on two machines."""
    path = folder / "packing.sqlite"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime)")
        made.execute("CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic)")
        made.executemany("INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)", vms)
        types = [(1, 10, 1, 0.25, 0.125), (2, 10, 2, 0.5, 0.375), (3, 11, 1, 1.0, 1.0)]
        made.executemany("INSERT INTO vmType VALUES (?, ?, ?, ?, ?, 0, 0, 0)", types)
    made.close()
    return path


def read(path: Path) -> Imported:
    """Read it for hosts of 64 vCPUs and 256 GiB."""
    return azure_packing.read(path, Options("", host_vcpus=64, host_gib=256.0))


def test_shares_become_sizes_and_days_become_seconds(tmp_path: Path) -> None:
    found = read(database(tmp_path, *GOOD))
    assert found.trace.servers.rows() == [
        (0, DAY // 2, 24.0, 65_536, None, None, "7"),
        (DAY // 4, None, 64.0, 262_144, None, None, "7"),
        (DAY, None, 24.0, 65_536, None, None, "8"),
    ]
    assert (found.trace.origin, found.trace.end_of_trace_seconds) == ("azure-packing", 14 * DAY)
    assert "1 VMs were there before and start at 0" in found.notes


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((4, 7, 99, 0, 1.0, 2.0), "its vmTypeId is not in vmType"),
        ((1, 7, 10, 0, 1.0, 2.0), "its id is that of a row before it"),
        ((None, 7, 10, 0, 1.0, 2.0), "its id is missing"),
        ((4, 7, 10, 0, "soon", 2.0), "start_seconds is no number within 3,000 years"),
        ((4, 7, 10, 0, None, 2.0), "start_seconds is no number within 3,000 years"),
        ((4, 7, 10, 0, 1.0, "late"), "end_seconds is no number"),
        ((4, 7, 10, 0, 2.0, 1.0), "it ends before it starts"),
        ((4, 7, 10, 0, -2.0, -1.0), "it ended before the trace begins"),
        ((4, 7, 10, 0, 15.0, 16.0), "it starts after the end of the trace at 1209600 s"),
    ],
)
def test_what_is_no_vm_is_dropped(tmp_path: Path, row: tuple[object, ...], reason: str) -> None:
    found = read(database(tmp_path, *GOOD, row))
    assert found.trace.dropped == (Dropped(reason, 1, 4),)
    assert found.trace.servers.height == 3


def test_a_host_has_to_be_given(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="give --host-vcpus and --host-gib"):
        azure_packing.read(database(tmp_path, *GOOD), Options(""))


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(BadRequest, match="is no database of the packing trace"):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(BadRequest, match="no such table"):
        read(path)
    whole = database(tmp_path, *GOOD)
    whole.write_bytes(whole.read_bytes()[:4096])
    with pytest.raises(BadRequest, match="is no database"):
        read(whole)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "gone.sqlite")
    assert not (tmp_path / "gone.sqlite").exists()
