"""What the kernel guards of shared memory, whatever a borrower's process does beside the library."""

import errno
import fcntl
import mmap
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pondstack.domain.errors import InUse
from pondstack_rack.wait import wait_until
from pondstack_rdma.errors import KeyRevoked, RegistrationFailed, TransportGone, TransportTimeout
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.shm import ShmTransport, messages
from pondstack_rdma.shm import memory as memory_module
from pondstack_rdma.shm.address import connect
from pondstack_rdma.shm.control import DEAD, WORDS, ControlPage, ControlView
from pondstack_rdma.shm.lender import ShmLender
from pondstack_rdma.shm.memory import SEALS, SharedMemory

from .harness import DEADLINE_SECONDS, PAGE, SIZE, TIMEOUT_SECONDS, LenderProcess, impatient, open_descriptors


@dataclass
class Rogue:
    """A borrower that speaks the protocol itself and keeps the descriptors: no library checks what it does."""

    socket: socket.socket
    control: int

    @classmethod
    def connect(cls, ticket: Ticket) -> "Rogue":
        """Connect with a right ticket."""
        link = connect(ticket.address, 10)
        messages.send(link, ticket.to_dict())
        _, [control] = messages.receive(link)
        return cls(link, control)

    def open(self, key: Key) -> int:
        """Return the descriptor of a region."""
        messages.send(self.socket, {"id": 1, "key": key.to_dict()})
        _, [fd] = messages.receive(self.socket)
        return fd


@pytest.fixture
def lender(tmp_path: Path) -> Iterator[ShmLender]:
    with ShmTransport(tmp_path).lend("lender1") as made:
        yield made


@pytest.fixture
def rogue(lender: ShmLender) -> Iterator[Rogue]:
    made = Rogue.connect(lender.admit("rogue"))
    yield made
    made.socket.close()
    os.close(made.control)


def test_no_borrower_can_resize_or_seal_a_region(lender: ShmLender, rogue: Rogue) -> None:
    region = lender.register(SIZE)
    fd = rogue.open(lender.export(region, "rogue"))
    for size in (0, SIZE - PAGE, SIZE + PAGE):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    for seal in (fcntl.F_SEAL_WRITE, 0x10):
        with pytest.raises(PermissionError):
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seal)
    assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) == SEALS
    os.close(fd)
    assert lender.load(region, 0, SIZE) == bytes(SIZE)


def test_no_borrower_can_revive_a_key(lender: ShmLender, rogue: Rogue) -> None:
    key = lender.export(lender.register(SIZE), "rogue")
    rogue.open(key)
    lender.revoke(key)
    with pytest.raises(PermissionError):
        mmap.mmap(rogue.control, 0)
    with pytest.raises(PermissionError):
        os.pwrite(rogue.control, b"\1" * 8, 0)
    with open(f"/proc/self/fd/{rogue.control}", "r+b", buffering=0) as again:
        with pytest.raises(PermissionError):
            again.write(b"\1" * 8)


def test_a_borrower_that_keeps_its_mapping_reaches_nobody(lender: ShmLender, rogue: Rogue) -> None:
    """What it maps after the revocation is its own: the next borrower's pages are others, and the content is gone."""
    region = lender.register(SIZE)
    key = lender.export(region, "rogue")
    fd = rogue.open(key)
    with mmap.mmap(fd, SIZE) as kept:
        kept[:6] = b"secret"
        lender.revoke(key)
        assert kept[:6] == bytes(6)
        second = lender.export(region, "host2")
        lender.store(region, 0, b"of host2")
        kept[:] = b"x" * SIZE
        assert kept[:8] != b"of host2"
        assert lender.load(region, 0, 16) == b"of host2" + bytes(8)
        assert lender.revoke(second)
    os.close(fd)


def test_a_revocation_gives_the_pages_back_while_the_borrower_maps_them(lender: ShmLender, rogue: Rogue) -> None:
    key = lender.export(lender.register(SIZE), "rogue")
    fd = rogue.open(key)
    assert os.fstat(fd).st_blocks * 512 == SIZE
    with mmap.mmap(fd, SIZE):
        lender.revoke(key)
        assert os.fstat(fd).st_blocks == 0
    os.close(fd)


def test_each_region_is_there_before_it_is_used() -> None:
    memory = SharedMemory(SIZE)
    assert os.fstat(memory.fd).st_blocks * 512 == SIZE
    assert memory.locked
    for _ in range(2):
        memory.close()


def test_memory_that_the_host_does_not_have_is_refused_before_any_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is made up, and taking pages fails the test: a mistake here must not take the real one's memory."""
    monkeypatch.setattr(os, "posix_fallocate", lambda *_: pytest.fail("it took pages"))
    with pytest.raises(RegistrationFailed, match="lend less"):
        SharedMemory(15 * SIZE + PAGE, room=lambda: (16 * SIZE, 16 * SIZE))


def test_memory_that_others_take_meanwhile_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([(16 * SIZE, 16 * SIZE), (16 * SIZE, 16 * SIZE), (SIZE, 16 * SIZE)])
    monkeypatch.setattr(memory_module, "_STEP_BYTES", SIZE // 2)
    before = open_descriptors()
    with pytest.raises(RegistrationFailed, match="lend less"):
        SharedMemory(SIZE, room=lambda: next(answers))
    assert open_descriptors() <= before


def test_a_kernel_that_gives_no_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(RegistrationFailed, match="ulimit"):
        SharedMemory(SIZE)


def test_a_lender_that_may_not_lock_lends_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    real = mmap.mmap

    def limited(fd: int, size: int, flags: int) -> mmap.mmap:
        if flags & 0x2000:
            raise BlockingIOError("as with RLIMIT_MEMLOCK")
        return real(fd, size, flags=flags)

    monkeypatch.setattr(mmap, "mmap", limited)
    memory = SharedMemory(SIZE)
    assert not memory.locked
    memory.close()


def test_a_region_of_two_keys_lives_as_long_as_the_second(tmp_path: Path, lender: ShmLender) -> None:
    region = lender.register(SIZE)
    first, second = lender.export(region, "host1"), lender.export(region, "host2")
    transport = ShmTransport(tmp_path)
    with transport.connect(lender.admit("host1"), 10) as source, transport.connect(lender.admit("host2"), 10) as target:
        source.write(first, 0, b"moves")
        assert target.read(second, 0, 5) == b"moves"
        lender.revoke(first)
        with pytest.raises(KeyRevoked):
            source.write(first, 0, b"x")
        assert target.read(second, 0, 5) == b"moves"


def test_a_word_that_is_used_again_does_not_revive_the_former_key() -> None:
    page = ControlPage()
    view = ControlView(page.fd)
    page.add(1)
    slot = page.slot(1)
    assert view.lives(slot, 1)
    page.end(1)
    assert not view.lives(slot, 1)
    page.add(2)
    assert page.slot(2) == slot
    assert view.lives(slot, 2)
    assert not view.lives(slot, 1)
    assert not view.lives(slot, DEAD)
    view.close()
    page.close()


def test_a_full_page_is_an_error() -> None:
    page = ControlPage()
    for number in range(1, WORDS + 1):
        page.add(number)
    with pytest.raises(RegistrationFailed, match="revoke some"):
        page.add(WORDS + 1)
    page.end(7)
    page.add(WORDS + 1)
    page.close()


def test_a_name_is_one_lenders(tmp_path: Path, lender: ShmLender) -> None:
    with pytest.raises(InUse, match="another name"):
        ShmTransport(tmp_path).lend("lender1")
    assert lender.admit("host1").address == str(tmp_path / "lender1.sock")
    lender.close()
    assert not list(tmp_path.iterdir())


def test_only_the_same_user_may_connect(tmp_path: Path, lender: ShmLender) -> None:
    assert lender.register(PAGE)
    assert (tmp_path / "lender1.sock").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RegistrationFailed, match="folder"):
        ShmTransport(tmp_path / "file" / "folder").lend("host1")


@pytest.mark.parametrize("nonsense", [b"{", b"[]", b"{}", b'{"borrower": 5}', b"\xff" * 100, b"x" * 10000, b"[" * 4000])
def test_nonsense_ends_one_link_only(lender: ShmLender, rogue: Rogue, nonsense: bytes) -> None:
    key = lender.export(lender.register(SIZE), "rogue")
    link = connect(lender.admit("host1").address, 10)
    link.send(nonsense)
    if link.recv(4096):
        assert link.recv(4096) == b""
    link.close()
    os.close(rogue.open(key))


def test_an_open_that_timed_out_leaves_the_link_whole(tmp_path: Path) -> None:
    """What was open serves on; the late answer is not taken for the next one's, and its descriptor is closed."""
    process = LenderProcess("shm", tmp_path)
    ticket, first = process.lend("host1")
    second, third = process.lend("host1")[1], process.lend("host1")[1]
    with ShmTransport(tmp_path).connect(ticket, TIMEOUT_SECONDS) as link:
        link.write(first, 0, b"before")
        with process.frozen():
            with impatient(link), pytest.raises(TransportTimeout, match="frozen"):
                link.open(second)
            assert link.read(first, 0, 6) == b"before"
        assert wait_until(lambda: process.ask("load", region=0, offset=0, size=6) == b"before".hex(), DEADLINE_SECONDS)
        for key, data in ((third, b"third"), (second, b"second")):
            link.write(key, 0, data)
        assert bytes.fromhex(process.ask("load", region=1, offset=0, size=6)) == b"second"
        assert bytes.fromhex(process.ask("load", region=2, offset=0, size=5)) == b"third"
        process.kill()
        with pytest.raises(TransportGone, match="mirror"):
            link.read(first, 0, 6)
    process.close()


def test_a_lender_makes_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    with ShmTransport(folder).lend("host1"):
        assert (folder / "host1.sock").is_socket()
        assert folder.stat().st_mode & 0o777 == 0o700
