"""Pages move over a kernel that obeys, obeys in part, or not at all."""

import errno
from array import array
from collections.abc import Iterator

import pytest

from pondstack_agent.mitigation import privileged

PAGE, POOL = 4096, 2


class Kernel:
    """move_pages(2) of one process. `where`: address to node; `busy`: addresses that do not move, of which a call moves
    what comes before them only; `huge`: moves with the first of its pages, and says -EBUSY of the others.
    """

    def __init__(self, where: dict[int, int]) -> None:
        self.where = where
        self.busy: set[int] = set()
        self.huge: set[int] = set()
        self.full = False
        self.ended = False
        self.calls: list[int] = []

    def call(self, _pid: int, addresses, nodes, status) -> tuple[int, str]:
        """As privileged._call."""
        if self.ended:
            return 0, "No such process"
        if nodes is None:
            for index, address in enumerate(addresses):
                status[index] = self.where.get(address, -errno.ENOENT)
            return 0, ""
        self.calls.append(len(addresses))
        if self.full:
            return 0, "Cannot allocate memory"
        for index, address in enumerate(addresses):
            if address in self.busy:
                return len(addresses) - index, ""
            if self.huge and address in self.huge:
                status[index] = -errno.EBUSY if self.where[address] == nodes[index] else nodes[index]
                self.where.update(dict.fromkeys(self.huge, nodes[index]))
            else:
                self.where[address] = status[index] = nodes[index]
        return 0, ""


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    """2,000 pages of a process, every second one on the pool's node, and a hole."""
    made = Kernel({number * PAGE: 0 if number % 2 else POOL for number in range(2000) if number != 7})
    monkeypatch.setattr(privileged, "_call", made.call)
    monkeypatch.setattr(privileged.memory_users, "is_guest", lambda _pid: True)
    return made


def move(at_most: int = 10_000) -> tuple[int, int, str]:
    """Move all of it to the pool's node."""
    return privileged.gather_pages(1, [(0, 1000 * PAGE, PAGE), (1000 * PAGE, 2000 * PAGE, PAGE)], POOL, at_most)


def elsewhere(kernel: Kernel) -> int:
    """Return how many pages are elsewhere."""
    return sum(node != POOL for node in kernel.where.values())


def test_only_pages_that_are_elsewhere_move(kernel: Kernel) -> None:
    assert move() == (999, 0, "")
    assert elsewhere(kernel) == 0
    assert kernel.calls == [999]
    assert move() == (0, 0, "")
    assert kernel.calls == [999]


def test_no_more_than_there_is_room_for(kernel: Kernel) -> None:
    assert move(100) == (100, 0, "")
    assert elsewhere(kernel) == 899
    assert kernel.calls == [100]


def test_a_page_that_stays_keeps_few_others(kernel: Kernel) -> None:
    kernel.busy = {1 * PAGE}
    moved, left, trouble = move()
    assert (moved + left, trouble) == (999, "they are busy or pinned")
    assert left == elsewhere(kernel) == 512  # one piece; the kernel stopped there
    kernel.busy.clear()
    assert move() == (512, 0, "")


def test_what_the_kernel_calls_busy_and_has_moved_is_moved(kernel: Kernel) -> None:
    kernel.huge = {number * PAGE for number in range(1, 9, 2) if number != 7}
    assert move() == (999, 0, "")


def test_a_full_node(kernel: Kernel) -> None:
    kernel.full = True
    assert move() == (0, 999, "Cannot allocate memory")
    assert kernel.calls == [999, 512, 487]


def test_a_process_that_has_ended(kernel: Kernel) -> None:
    kernel.ended = True
    assert move() == (0, 0, "No such process")


def test_a_mitigation_asks_once_for_all(kernel: Kernel) -> None:
    ranges = [(8 * PAGE, 2000 * PAGE, PAGE)]
    assert privileged.move_pages(1, ranges, POOL) == ""
    assert elsewhere(kernel) == 3
    kernel.busy = {9 * PAGE}
    assert privileged.move_pages(1, ranges, 0) == "1991 addresses were left"
    assert kernel.calls == [1992, 1992]


def test_addresses_are_those_of_every_page() -> None:
    """Of mappings within a span and over several; of pages small, huge, and larger than a span; at both ends."""
    span, top = privileged._SPAN, 1 << 47
    ranges = [
        (0, 511 * PAGE, PAGE),
        (span - PAGE, span + PAGE, PAGE),
        ((1 << 40) + 7 * PAGE, (1 << 40) + 2 * span + 1300 * PAGE, PAGE),
        (0x7F12_3456_7000, 0x7F12_3456_7000 + span, PAGE),
        ((1 << 32) - span, (1 << 32) + span, PAGE),
        ((1 << 30) + (2 << 20), (1 << 30) + 3 * span, 2 << 20),
        (7 << 30, 1030 << 30, 1 << 30),
        (top - 5000 * PAGE, top, PAGE),
        (PAGE, PAGE, PAGE),
    ]
    wanted = [address for start, end, step in ranges for address in range(start, end, step)]
    assert list(privileged._addresses(ranges)) == wanted


def test_the_call_itself() -> None:
    """On this machine's kernel: a page that was written has a node, one that was not has none."""
    import ctypes
    import mmap
    import os

    with mmap.mmap(-1, 2 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[0] = 1
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        status = array("i", [99, 99])
        done, trouble = privileged._call(os.getpid(), array("Q", [start, start + PAGE]), None, status)
    if trouble:
        pytest.skip(f"move_pages(2) is not for tests of this machine: {trouble}")
    assert done == 0
    assert status[0] >= 0
    assert status[1] < 0
