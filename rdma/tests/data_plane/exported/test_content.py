"""What is written is read, and nothing else: whole pages and parts, trims, zeros, failing stores, room."""

import os
import random
from pathlib import Path

import pytest

from tests.fixtures.seeds import seed

from ..processes import BlockPlane
from .client import EIO, FLUSH, FUA, NO_HOLE, TRIM, ZERO, Nbd, NbdError, connect

MIB, PAGE = 2**20, 4096


def allocated(path: Path) -> int:
    """Return the bytes that a file has room for."""
    return path.stat().st_blocks * 512


def stands_in(path: Path, data: bytes) -> bool:
    """Whether a file has some bytes."""
    return data in path.read_bytes()


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plain"])
def test_it_is_a_disk(plane: BlockPlane, sealed: bool) -> None:
    """Random commands on any range, beside a model."""
    plane.export(2, sealed=sealed)
    dice, model = random.Random(seed(20191)), bytearray(2 * MIB)
    with connect(plane.socket) as link:
        assert link.size == 2 * MIB
        for _ in range(600):
            size = dice.choice((1, 511, PAGE, 3 * PAGE, 70000))
            offset = (
                dice.randrange((2 * MIB - size) // 512) * 512 if dice.random() < 0.5 else dice.randrange(2 * MIB - size)
            )
            kind = dice.randrange(5)
            if kind == 0:
                data = dice.randbytes(size)
                link.write(offset, data, dice.choice((0, FUA)))
                model[offset : offset + size] = data
            elif kind == 1:
                link.change(ZERO, offset, size, dice.choice((0, NO_HOLE)))
                model[offset : offset + size] = bytes(size)
            elif kind == 2:
                link.change(TRIM, offset, size)
                first, end = -(-offset // PAGE) * PAGE, (offset + size) // PAGE * PAGE
                model[first:end] = bytes(max(end - first, 0))
            else:
                assert link.read(offset, size) == model[offset : offset + size]
        link.change(FLUSH)
        plane.restart()
    with connect(plane.socket) as link:
        for offset in range(0, 2 * MIB, 65536):
            assert link.read(offset, 65536) == model[offset : offset + 65536]


def test_what_lies_in_the_mirror_is_sealed(plane: BlockPlane) -> None:
    plane.export(1)
    secret = b"TENANT SECRET version one" * 40
    with connect(plane.socket) as link:
        link.write(PAGE, secret)
        assert not stands_in(plane.mirror, secret[:25])
        assert (plane.mirror.stat().st_mode & 0o777, allocated(plane.mirror)) == (0o600, MIB)


@pytest.mark.parametrize(
    ("kind", "flags", "room"), [(TRIM, 0, MIB - 64 * PAGE), (ZERO, 0, MIB - 64 * PAGE), (ZERO, NO_HOLE, MIB)]
)
def test_what_is_given_up_is_nowhere(plane: BlockPlane, kind: int, flags: int, room: int) -> None:
    """Its former content, here in clear, is not in the mirror any more, and its room is the host's, or is kept."""
    plane.export(1, sealed=False)
    data = os.urandom(64 * PAGE)
    with connect(plane.socket) as link:
        link.write(0, data)
        assert stands_in(plane.mirror, data[:100])
        link.change(kind, 0, 64 * PAGE, flags)
        assert link.read(0, 64 * PAGE) == bytes(64 * PAGE)
        assert not any(stands_in(plane.mirror, data[at : at + 100]) for at in range(0, len(data), PAGE))
        assert allocated(plane.mirror) == room
        link.write(0, b"x")
        assert link.read(0, 2) == b"x\0"


def test_a_death_between_trim_and_discard(plane: BlockPlane) -> None:
    """The next process discards what the one that died had given up."""
    plane.export(1, sealed=False)
    data = os.urandom(16 * PAGE)
    with connect(plane.socket) as link:
        link.write(0, data)
        plane.kill()
    plane.start(PONDSTACK_CRASH_AT="dropped:1")
    plane.await_ready()
    with connect(plane.socket) as link, pytest.raises(OSError):
        link.change(TRIM, 0, 16 * PAGE)
    plane.await_end()
    assert stands_in(plane.mirror, data[:100])
    plane.start()
    plane.await_ready()
    with connect(plane.socket) as link:
        assert link.read(0, 16 * PAGE) == bytes(16 * PAGE)
    assert not stands_in(plane.mirror, data[:100])


def damage(path: Path, offset: int) -> None:
    """Change a byte of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def refuses(link: Nbd, offset: int, size: int) -> bool:
    """Whether a read is answered with EIO."""
    with pytest.raises(NbdError) as found:
        link.read(offset, size)
    return found.value.number == EIO


def test_a_damaged_page_is_no_other_page(plane: BlockPlane) -> None:
    """Neither it, nor a part of it, nor an older one that somebody put back."""
    plane.export(1)
    with connect(plane.socket) as link:
        link.write(0, b"1" * 3 * PAGE)
        older = plane.mirror.read_bytes()[2 * PAGE : 3 * PAGE]
        link.write(2 * PAGE, b"2" * PAGE)
        damage(plane.mirror, PAGE + 5)
        with plane.mirror.open("r+b") as file:
            file.seek(2 * PAGE)
            file.write(older)
        assert refuses(link, 0, 3 * PAGE)
        assert refuses(link, PAGE + 100, 1)
        assert refuses(link, 2 * PAGE, PAGE)
        with pytest.raises(NbdError):
            link.write(PAGE + 7, b"a part")
        link.write(PAGE, b"3" * 2 * PAGE)
        assert link.read(0, 3 * PAGE) == b"1" * PAGE + b"3" * 2 * PAGE
        assert plane.device()["counters"]["read_failures"] == 3


def read_or_error(link: Nbd, offset: int) -> bytes | int:
    """Return a page, or the number of the error."""
    try:
        return link.read(offset, PAGE)
    except NbdError as error:
        return error.number


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plain"])
def test_a_mirror_that_takes_nothing(plane: BlockPlane, sealed: bool) -> None:
    """It is told; pages are what they were or unreadable, never something else; later writes work again."""
    plane.export(2, sealed=sealed)
    with connect(plane.socket) as link:
        link.write(0, b"1" * 8 * PAGE)
        with plane.failing_mirror(at_bytes=4 * PAGE):
            with pytest.raises(NbdError) as found:
                link.write(0, b"2" * 8 * PAGE)
            assert found.value.number == 28
            for page in range(8):
                assert read_or_error(link, page * PAGE) in (b"1" * PAGE, EIO)
            with pytest.raises(NbdError):
                link.write(MIB, b"3" * PAGE)
            assert link.read(MIB, PAGE) == bytes(PAGE)
        link.write(0, b"4" * 8 * PAGE)
        assert link.read(0, 8 * PAGE) == b"4" * 8 * PAGE
        assert plane.device()["counters"]["write_failures"] == 2
