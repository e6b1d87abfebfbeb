"""The profiler's exact method: pure on texts of smaps, and on a real process of this machine."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from pondstack_agent.tiering.heat import Heat, between, lines
from pondstack_agent.tiering.pagetypes import ANON, FILE, HUGETLB, MIXED, TMPFS, Mapping, mappings, tmpfs_devices
from pondstack_agent.tiering.referenced import Referenced

TLB_KIB = 8 * 1024
"""About what a processor holds translations for; and Python uses some memory itself."""
MOUNTS = """\
22 1 254:0 / / rw,noatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /tmp rw - tmpfs tmp rw
"""


def smap(where: str, rss: int, referenced: int = 0, anonymous: int = 0, huge: int = 0) -> str:
    return (
        f"{where}\nSize:{rss:>16} kB\nRss:{rss:>17} kB\nReferenced:{referenced:>10} kB\nAnonymous:{anonymous:>11} kB\n"
        f"Shared_Hugetlb: {huge:>6} kB\nVmFlags: rd wr mr mw me\n"
    )


def test_mappings_by_type() -> None:
    text = "".join(
        [
            smap("5500-5600 rw-p 00000000 00:00 0   [heap]", 100, 60, 100),
            smap("6000-6100 r-xp 00000000 fe:00 77  /usr/bin/python3.11", 40, 30),
            smap("6100-6200 rw-p 00000000 fe:00 77  /usr/bin/python3.11", 20, 10, 20),
            smap("6200-6300 rw-p 00000000 fe:00 78  /usr/lib/x.so", 20, 10, 8),
            smap("7000-7100 rw-s 00000000 00:1a 9   /tmp/a file", 12, 4),
            smap("7100-7200 rw-s 00000000 00:01 9   /memfd:ram (deleted)", 16, 8),
            smap("7200-7300 rw-s 00000000 00:0f 4   /dev/hugepages/x", 0, 0, 0, 2048),
            smap("7300-7400 r--p 00000000 00:00 0   [vvar]", 0),
        ]
    )
    found = [(item.start, item.kind, item.resident_kib, item.referenced_kib) for item in _all(text)]
    assert found == [
        (0x5500, ANON, 100, 60),
        (0x6000, FILE, 40, 30),
        (0x6100, ANON, 20, 10),
        (0x6200, MIXED, 20, 10),
        (0x7000, TMPFS, 12, 4),
        (0x7100, TMPFS, 16, 8),
        (0x7200, HUGETLB, 2048, 0),
    ]


def _all(text: str) -> list[Mapping]:
    return list(mappings(text, tmpfs_devices(MOUNTS)))


def test_heat_between_two_looks() -> None:
    first = [Mapping(1, 2, ANON, 100, 30), Mapping(5, 6, FILE, 50, 50)]
    second = [Mapping(1, 2, ANON, 120, 70), Mapping(8, 9, ANON, 10, 10), Mapping(9, 10, HUGETLB, 2048, 0)]
    # The file is gone, the second anonymous mapping is new.
    assert between(first, second) == {ANON: Heat(30, 50, 50)}


def test_the_table_has_a_sum() -> None:
    rows = lines({ANON: Heat(1024, 0, 1024), FILE: Heat(0, 2048, 0)})
    assert [row.split() for row in rows] == [
        ["anon", "2.0", "1.0", "0.0", "1.0", "50.0", "0.0", "50.0"],
        ["file", "2.0", "0.0", "2.0", "0.0", "0.0", "100.0", "0.0"],
        ["all", "4.0", "1.0", "2.0", "1.0", "25.0", "50.0", "25.0"],
    ]


CHILD = """
import mmap, sys
MIB, PAGE = 2**20, 4096
def made(mib, flags):
    memory = mmap.mmap(-1, mib * MIB, flags=flags | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for start in range(0, mib * MIB, PAGE):
        memory[start] = 1
    return memory
parts = {"a": made(24, mmap.MAP_PRIVATE), "b": made(40, mmap.MAP_PRIVATE), "c": made(16, mmap.MAP_SHARED)}
print("ready", flush=True)
for line in sys.stdin:
    for name in line.split():
        parts[name][::PAGE]
    print("done", flush=True)
"""


class Child:
    """A process with 24 and 40 MiB of its own and 16 MiB of shared memory, which reads what it is told to read."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", CHILD]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer("ready")

    def use(self, *parts: str) -> None:
        """Have it read a byte of each page of these parts, once."""
        assert self.process.stdin
        self.process.stdin.write(" ".join(parts) + "\n")
        self.process.stdin.flush()
        self.answer("done")

    def answer(self, text: str) -> None:
        """Wait for an answer."""
        assert self.process.stdout
        assert self.process.stdout.readline() == f"{text}\n"


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child()
    yield made
    made.process.kill()
    made.process.communicate()


def test_a_real_process_is_measured(child: Child) -> None:
    """Windows are as long as the process needs for what it does in them."""
    does = [("a",), ("a", "c"), (), ()]
    method = Referenced(child.process.pid, 60, 300, wait=lambda _seconds: child.use(*does.pop(0)))
    first, second = method.cycle(), method.cycle()
    assert first[TMPFS].total == 16 * 1024
    assert first[TMPFS].hot == 0
    assert first[TMPFS].warm == pytest.approx(16 * 1024, abs=TLB_KIB)
    assert first[ANON].hot == pytest.approx(24 * 1024, abs=TLB_KIB)
    assert first[ANON].cold == pytest.approx(40 * 1024, abs=TLB_KIB)
    assert second[ANON].hot <= TLB_KIB
    assert second[ANON].warm <= TLB_KIB
    assert second[FILE].total > 0
    assert method.cost.longest_look_seconds > 0
    assert method.cost.processor_seconds > 0


def test_the_windows_are_what_was_asked_for(child: Child) -> None:
    waited: list[float] = []
    Referenced(child.process.pid, 60, 300, wait=waited.append).cycle()
    assert waited == [60, 240]


def test_a_process_that_ended_is_an_error(child: Child) -> None:
    def end(_seconds: float) -> None:
        child.process.kill()
        child.process.wait()

    with pytest.raises(OSError, match=r"No such (file|process)"):
        Referenced(child.process.pid, 60, 300, wait=end).cycle()
