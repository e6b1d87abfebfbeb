"""What is decided around DAMON; the kernel's own is in tests/hardware/test_kvm_accesses.py."""

import errno
import threading
from pathlib import Path

import pytest

from pondstack_agent.records import Records
from pondstack_agent.telemetry.damon import ADMIN, BUSY, FIRST_REGIONS, NONE, Damon, pieces, union

MIB = 2**20


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A root folder of a kernel whose DAMON somebody uses."""
    for name, text in (
        ("proc/sys/kernel/random/boot_id", "this\n"),
        (f"{ADMIN}/nr_kdamonds", "1\n"),
        (f"{ADMIN}/0/state", "on\n"),
        (f"{ADMIN}/0/contexts/0/targets/0/pid_target", "77\n"),
    ):
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "root"


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records")


def damon(records: Records, root: Path) -> Damon:
    return Damon(records, 60.0, threading.Event(), root)


def test_a_kernel_without_damon(records: Records, tmp_path: Path) -> None:
    assert damon(records, tmp_path).why_not() == NONE


@pytest.mark.parametrize("record", [None, {"pid": 77, "boot": "former"}, {"pid": 78, "boot": "this"}])
def test_somebody_elses_damon_stays(kernel: Path, records: Records, record: dict[str, object] | None) -> None:
    if record:
        records.put("watch", record)
    assert damon(records, kernel).why_not() == BUSY
    assert (kernel / ADMIN / "nr_kdamonds").read_text() == "1\n"
    assert (kernel / ADMIN / "0/state").read_text() == "on\n"


def test_attributes_that_are_never_free_are_somebody_elses(
    kernel: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(path: Path) -> str:
        raise OSError(errno.EBUSY, "Device or resource busy", str(path))

    monkeypatch.setattr(Path, "read_text", busy)
    monkeypatch.setattr("pondstack_agent.telemetry.damon_attributes._RETRY_SECONDS", 0.0)
    assert damon(records, kernel).why_not() == BUSY


@pytest.mark.parametrize("target", ["77", "0", ""])
def test_a_former_lifes_is_taken_away(kernel: Path, records: Records, target: str) -> None:
    """Whatever it was killed at: the process is named late."""
    path = kernel / ADMIN / "0/contexts/0/targets/0/pid_target"
    path.write_text(target)
    if not target:
        path.unlink()
    records.put("watch", {"pid": 77, "boot": "this"})
    assert damon(records, kernel).why_not() == ""
    assert (kernel / ADMIN / "0/state").read_text() == "off"
    assert (kernel / ADMIN / "nr_kdamonds").read_text() == "0"
    assert records.all() == {}


def test_one_that_somebody_begins_meanwhile_stays_theirs(kernel: Path, records: Records) -> None:
    with pytest.raises(OSError, match=BUSY):
        damon(records, kernel).watch(77, [])
    assert (kernel / ADMIN / "nr_kdamonds").read_text() == "1\n"
    assert (kernel / ADMIN / "0/state").read_text() == "on\n"
    assert records.all() == {}


def test_it_begins_with_pieces_of_equal_size() -> None:
    found = list(pieces([(0, 5 * MIB), (8 * MIB, 12 * MIB)]))
    assert found == [(0, 2 * MIB), (2 * MIB, 4 * MIB), (4 * MIB, 5 * MIB), (8 * MIB, 10 * MIB), (10 * MIB, 12 * MIB)]
    large = list(pieces([(0, 64 << 30)]))
    assert FIRST_REGIONS <= len(large) <= FIRST_REGIONS + 10
    assert sum(end - start for start, end in large) == 64 << 30


def test_addresses_count_once() -> None:
    assert union([(5, 9), (0, 3), (3, 4), (8, 12), (6, 7)]) == [(0, 4), (5, 12)]
    assert union([]) == []
