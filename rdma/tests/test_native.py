"""The compiled part of shared memory: what it does, what it leaves to Python, and that sanitizers find nothing."""

import mmap
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_rdma.model import Key, Read, Write
from pondstack_rdma.shm import NATIVE, ShmTransport
from pondstack_rdma.shm.link import ShmLink
from pondstack_rdma.shm.native_link import NativeShmLink, ShmAccess

from .harness import PAGE, SIZE, TIMEOUT_SECONDS, pattern
from .sanitized import NATIVE as SOURCES
from .sanitized import build, run

KEY = Key(7, "host1", SIZE, b"token")

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the compiled part was not built: make setup, with gcc")


class Memory:
    """A region, a control page with the key's word at 3, and an accessor that knows both."""

    def __init__(self) -> None:
        assert NATIVE
        self.region = memoryview(mmap.mmap(-1, SIZE))
        self.control = memoryview(mmap.mmap(-1, 4096)).cast("Q")
        self.control[3] = 7
        left, self.right = socket.socketpair()
        self.left = left
        self.access: ShmAccess = NATIVE(left.fileno(), Read, Write)
        assert self.access.add(KEY, self.region, self.control, 3, 7)


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory()
    yield made
    made.access.remove(KEY)
    made.left.close()
    made.right.close()


def test_it_reads_and_writes(memory: Memory) -> None:
    assert memory.access.write(KEY, PAGE, pattern(1, PAGE))
    assert memory.region[PAGE : 2 * PAGE] == pattern(1, PAGE)
    into = bytearray(PAGE)
    assert memory.access.read(KEY, PAGE, into)
    assert into == pattern(1, PAGE)
    assert memory.access.write(KEY, SIZE, b"")
    assert memory.access.read(KEY, SIZE - 1, bytearray(1))


def test_a_batch_in_order(memory: Memory) -> None:
    into = bytearray(PAGE)
    operations = [Write(KEY, 0, pattern(1, PAGE)), Write(KEY, 0, pattern(2, PAGE)), Read(KEY, 0, into)]
    assert memory.access.batch(operations) == 3
    assert into == pattern(2, PAGE)
    assert memory.access.batch(tuple(operations)) == 3
    assert memory.access.batch([]) == 0


@pytest.mark.parametrize(
    ("key", "offset", "buffer"),
    [
        (Key(7, "host1", SIZE, b"token"), 0, bytearray(8)),  # equal, but not the one that was opened
        (KEY, -1, bytearray(8)),
        (KEY, SIZE - 7, bytearray(8)),
        (KEY, SIZE + 1, bytearray()),
        (KEY, 2**63 - 1, bytearray(8)),
        (KEY, 2**64, bytearray(8)),
        (KEY, -(2**70), bytearray(8)),
        (KEY, 0.0, bytearray(8)),
        (KEY, 0, memoryview(bytearray(16))[::2]),
        (KEY, 0, "text"),
        (KEY, 0, None),
    ],
)
def test_what_is_unusual_is_left_to_python(memory: Memory, key: Key, offset, buffer) -> None:
    before = bytes(memory.region)
    assert not memory.access.read(key, offset, buffer)
    assert not memory.access.write(key, offset, buffer)
    assert memory.access.batch([Write(KEY, 0, b"x"), Write(key, offset, buffer)]) == -1
    assert memory.access.batch([Read(key, offset, buffer)]) == -1
    assert memory.region == before


def test_nothing_is_read_into_bytes(memory: Memory) -> None:
    assert not memory.access.read(KEY, 0, bytes(8))  # type: ignore[arg-type]


@pytest.mark.parametrize("operations", [None, 3, {}, iter(()), [None], [Write(KEY, 0, b"")] * 1025, ["x"]])
def test_what_is_no_batch(memory: Memory, operations) -> None:
    assert memory.access.batch(operations) == -1


def test_more_than_may_be_copied_at_once(memory: Memory) -> None:
    """A call holds the interpreter's lock: the rest is Python's, which lets others in between."""
    assert memory.access.batch([Read(KEY, 0, bytearray(SIZE))] * 16) == 16
    assert memory.access.batch([Read(KEY, 0, bytearray(SIZE))] * 17) == -1


def test_a_revoked_key(memory: Memory) -> None:
    memory.control[3] = 0
    assert not memory.access.write(KEY, 0, b"x")
    assert memory.access.batch([Write(KEY, 0, b"x")]) == 0
    assert memory.region[0] == 0
    memory.control[3] = 8  # another key has its word
    assert not memory.access.read(KEY, 0, bytearray(1))


def test_a_window_that_was_removed(memory: Memory) -> None:
    memory.access.remove(KEY)
    memory.access.remove(KEY)
    assert not memory.access.write(KEY, 0, b"x")
    memory.region.release()  # nothing holds it any more


def test_the_same_window_twice(memory: Memory) -> None:
    assert not memory.access.add(KEY, memory.region, memory.control, 3, 7)


@pytest.mark.parametrize("slot", [-1, 512, 2**40])
def test_a_word_that_is_not_there(memory: Memory, slot: int) -> None:
    with pytest.raises(ValueError, match="no such word"):
        memory.access.add(Key(8, "host1", SIZE, b""), memory.region, memory.control, slot, 8)


def test_many_windows(memory: Memory) -> None:
    """Those that find no room are Python's; none is taken for another."""
    keys = [Key(number, "host1", PAGE, b"") for number in range(100, 1600)]
    regions = [memoryview(bytearray(PAGE)) for _ in keys]
    known = [memory.access.add(key, region, memory.control, 3, 7) for key, region in zip(keys, regions, strict=True)]
    assert sum(known) > 900
    for key, region, is_known in zip(keys, regions, known, strict=True):
        assert memory.access.write(key, 0, key.number.to_bytes(2, "big")) == is_known
        assert bytes(region[:2]) == (key.number.to_bytes(2, "big") if is_known else bytes(2))
    for key in keys:
        memory.access.remove(key)


def test_a_lender_that_has_ended(memory: Memory) -> None:
    memory.right.close()
    noticed = False
    for _ in range(10**6):  # it looks once a millisecond
        if not memory.access.write(KEY, 0, b"x"):
            noticed = True
            break
    assert noticed
    assert memory.access.batch([Write(KEY, 0, b"x")]) == -1


def test_the_transport_uses_it(tmp_path: Path) -> None:
    transport = ShmTransport(tmp_path)
    with transport.lend("lender1") as lender:
        key, ticket = lender.export(lender.register(SIZE), "host1"), lender.admit("host1")
        with transport.connect(ticket, TIMEOUT_SECONDS) as link:
            assert isinstance(link, NativeShmLink)
            link.open(key)
            assert link._native.write(key, 0, b"x")
        with ShmTransport(tmp_path, access_type=None).connect(ticket, TIMEOUT_SECONDS) as slow:
            assert type(slow) is ShmLink


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Address and undefined behaviour: a build of its own does what a seeded process asks for."""
    built = tmp_path / "_native.abi3.so"
    build([SOURCES / "shm_access.c", SOURCES / "operation.c", SOURCES / "watch.c"], built)
    assert "accesses" in run("native_process.py", str(built), str(tmp_path), "20181")
