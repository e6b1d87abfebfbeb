"""Every byte is looked at, wherever it is."""

import mmap
from pathlib import Path

import pytest

from pondstack_agent.drivers.cxl import attributes, nonzero, privileged

SIZE = 3 * nonzero._CHUNK_BYTES // 2  # a whole chunk and a part of one


def test_zeros_are_zeros() -> None:
    assert nonzero.first(memoryview(bytearray(SIZE))) is None


@pytest.mark.parametrize("at", [0, 1, 8, 4095, nonzero._CHUNK_BYTES - 1, nonzero._CHUNK_BYTES, SIZE - 1])
def test_the_first_byte_that_is_not_zero_is_told(at: int) -> None:
    memory = bytearray(SIZE)
    memory[at] = 1
    memory[-1] = 1
    assert nonzero.first(memoryview(memory)) == at


def test_what_is_mapped_is_looked_at_and_zeroed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attributes, "check_device", lambda _path: None)
    size = 2 * mmap.PAGESIZE
    path = tmp_path / "dax"
    path.write_bytes(bytes(size - 1) + b"x")
    assert privileged.first_written_byte(str(path), size) == size - 1
    privileged.zero(str(path), size)
    assert privileged.first_written_byte(str(path), size) is None
