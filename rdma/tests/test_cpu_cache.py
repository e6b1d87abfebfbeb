"""Write-back of CPU caches: the bytes stay, lines of any alignment leave, and a CPU without it says so."""

import importlib
import mmap
import platform
import time

import pytest

from pondstack_rdma import cpu_cache

SIZE = 1 << 20
LINE = 64


@pytest.fixture
def memory() -> memoryview:
    return memoryview(mmap.mmap(-1, SIZE))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no instruction is known for this CPU")
def test_this_cpu_can() -> None:
    assert cpu_cache.INSTRUCTION in ("clflushopt", "clflush", "dc civac")


@pytest.mark.parametrize(("first", "last"), [(0, SIZE), (1, SIZE), (LINE, 2 * LINE), (LINE + 3, LINE + 4), (7, 7)])
def test_no_byte_changes(memory: memoryview, first: int, last: int) -> None:
    text = bytes(range(256)) * (SIZE // 256)
    memory[:] = text
    cpu_cache.write_back(memory[first:last])
    assert bytes(memory) == text


def test_lines_leave_the_cache(memory: memoryview) -> None:
    """A pass over what is cached is faster than one over what was written back; the best of several, on any machine."""
    small = memory[: 64 * LINE]

    def reading_ns() -> int:
        begun = time.perf_counter_ns()
        small.tobytes()
        return time.perf_counter_ns() - begun

    cached, evicted = [], []
    for _ in range(200):
        small.tobytes()
        cached.append(reading_ns())
        cpu_cache.write_back(small)
        evicted.append(reading_ns())
    assert sorted(evicted)[100] > sorted(cached)[100]


def test_a_wheel_without_the_compiled_part_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    write_back, instruction = cpu_cache._native()
    assert instruction == ""
    with pytest.raises(OSError, match="built without a compiler"):
        write_back(memoryview(b""))
