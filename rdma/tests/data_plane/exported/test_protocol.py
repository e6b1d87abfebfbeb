"""What an NBD client says, in its order or out of it."""

import os
import struct

import pytest

from ..processes import BLOCK, BlockPlane
from .client import (
    ABORT,
    ABOUT,
    ACK,
    DISCONNECT,
    EINVAL,
    ENOSPC,
    EXPORT_NAME,
    FLUSH,
    FUA,
    GO,
    INFO,
    INVALID,
    LIST,
    READ,
    SERVER,
    STARTTLS,
    STRUCTURED,
    TRIM,
    UNKNOWN,
    UNSUPPORTED,
    WRITE,
    ZERO,
    Nbd,
    NbdError,
    connect,
)

MIB = 2**20
FLAGS = 1 | 4 | 8 | 32 | 64 | 256
MOST = 256 * 1024


@pytest.fixture
def served(plane: BlockPlane) -> BlockPlane:
    plane.export(4)
    return plane


def test_what_is_told_of_the_export(served: BlockPlane) -> None:
    with Nbd(served.socket) as link:
        link.hello()
        found = link.go(option=INFO)
        assert found == link.go(option=INFO) == link.go("")
        assert found == [
            (ABOUT, struct.pack(">HQH", 0, 4 * MIB, FLAGS)),
            (ABOUT, struct.pack(">HIII", 3, 1, 4096, MOST)),
            (ABOUT, b"\0\1" + BLOCK.encode()),
            (ACK, b""),
        ]
        assert link.read(0, 10) == bytes(10)


def test_options(served: BlockPlane) -> None:
    with Nbd(served.socket) as link:
        link.hello()
        assert (
            link.option(STARTTLS) == link.option(STRUCTURED) == link.option(4711, b"x" * 8192) == [(UNSUPPORTED, b"")]
        )
        assert link.option(LIST) == [(SERVER, struct.pack(">I", len(BLOCK)) + BLOCK.encode()), (ACK, b"")]
        assert link.option(LIST, b"x") == link.option(GO, b"") == [(INVALID, b"")]
        assert link.option(GO, struct.pack(">IH", 2**32 - 1, 0)) == [(INVALID, b"")]
        assert link.option(GO, struct.pack(">IH", 0, 2)) == [(INVALID, b"")]
        assert link.option(GO, struct.pack(">IHHH", 0, 2, 0, 3))[-1] == (ACK, b"")


def test_another_export(served: BlockPlane) -> None:
    with Nbd(served.socket) as link:
        link.hello()
        assert link.go("another") == [(UNKNOWN, b"")]
        assert link.option(ABORT) == [(ACK, b"")]
        assert link.hung_up


@pytest.mark.parametrize(("flags", "padding"), [(1, 124), (3, 0)])
def test_the_old_way_to_begin(served: BlockPlane, flags: int, padding: int) -> None:
    with Nbd(served.socket) as link:
        link.hello(flags)
        link.link.sendall(struct.pack(">8sII", b"IHAVEOPT", EXPORT_NAME, len(BLOCK)) + BLOCK.encode())
        assert link.receive(10 + padding) == struct.pack(">QH", 4 * MIB, FLAGS) + bytes(padding)
        link.write(5, b"abc")
        assert link.read(4, 5) == b"\0abc\0"
    with Nbd(served.socket) as link:
        link.hello(flags)
        link.link.sendall(struct.pack(">8sII", b"IHAVEOPT", EXPORT_NAME, 3) + b"abc")
        assert link.hung_up


@pytest.mark.parametrize(
    ("kind", "offset", "size", "flags", "error"),
    [
        (READ, 4 * MIB, 1, 0, EINVAL),
        (READ, 2**64 - 1, 2, 0, EINVAL),
        (READ, 0, MOST + 1, 0, EINVAL),
        (READ, 0, 1, 2, EINVAL),
        (TRIM, 4 * MIB - 1, 2, 0, EINVAL),
        (ZERO, 4 * MIB - 1, 2, 0, ENOSPC),
        (ZERO, 0, 1, 4, EINVAL),
        (FLUSH, 0, 0, 2, EINVAL),
        (5, 0, 0, 0, EINVAL),
        (7, 0, 0, 0, EINVAL),
        (4711, 0, 0, 0, EINVAL),
    ],
)
def test_what_is_refused(served: BlockPlane, kind: int, offset: int, size: int, flags: int, error: int) -> None:
    """It is answered, and the connection goes on."""
    with connect(served.socket) as link:
        with pytest.raises(NbdError) as found:
            link.change(kind, offset, size, flags)
        assert found.value.number == error
        link.change(FLUSH)


def test_writes_behind_the_end(served: BlockPlane) -> None:
    with connect(served.socket) as link:
        with pytest.raises(NbdError) as found:
            link.write(4 * MIB - 1, b"ab")
        assert found.value.number == ENOSPC
        assert link.read(4 * MIB - 4096, 4096) == bytes(4096)


@pytest.mark.parametrize("said", [b"x" * 28, struct.pack(">IHHQQI", 0x25609513, 0, WRITE, 1, 0, MOST + 1)])
def test_who_speaks_no_nbd_is_hung_up_on(served: BlockPlane, said: bytes) -> None:
    with connect(served.socket) as other, connect(served.socket) as link:
        link.link.sendall(said)
        assert link.hung_up
        assert other.read(0, 4) == bytes(4)
    assert served.device()["counters"]["hang_ups"] == 1


def test_unknown_flags_of_a_client(served: BlockPlane) -> None:
    with Nbd(served.socket) as link:
        link.hello(1 | 4)
        assert link.hung_up


def test_an_option_that_is_too_long(served: BlockPlane) -> None:
    with Nbd(served.socket) as link:
        link.hello()
        link.link.sendall(struct.pack(">8sII", b"IHAVEOPT", LIST, 8193))
        assert link.hung_up


def test_many_commands_at_once(served: BlockPlane) -> None:
    """Answers come in order, also where more are asked for than is kept for one client."""
    with connect(served.socket) as link:
        data = os.urandom(MOST)
        link.write(0, data, FUA)
        cookies = [link.send(READ, 4096 * (at % 8), 32768) for at in range(64)]
        for at, cookie in enumerate(cookies):
            assert link.answer(cookie, 32768) == data[4096 * (at % 8) :][:32768]


def test_who_does_not_read_its_answers_holds_up_nobody(served: BlockPlane) -> None:
    with connect(served.socket) as silent, connect(served.socket) as other:
        for _ in range(40):
            silent.send(READ, 0, MOST)
        other.write(0, b"here")
        assert other.read(0, 4) == b"here"
    assert served.device()["state"] == "serving"


def test_half_a_command_holds_up_nobody(served: BlockPlane) -> None:
    with connect(served.socket) as slow, connect(served.socket) as other:
        slow.link.sendall(struct.pack(">IHHQQI", 0x25609513, 0, WRITE, 9, 0, 8192) + b"x" * 5000)
        assert other.read(0, 8192) == bytes(8192)
        slow.link.sendall(b"x" * 3192)
        slow.answer(9)
        assert other.read(0, 8192) == b"x" * 8192


def test_more_clients_than_there_is_room_for(served: BlockPlane) -> None:
    links = [connect(served.socket) for _ in range(8)]
    with Nbd(served.socket) as late:
        assert late.hung_up
    links.pop().link.close()
    with connect(served.socket) as link:
        link.write(0, b"x")
    for each in links:
        assert each.read(0, 1) == b"x"
        each.link.close()


def test_a_client_says_goodbye(served: BlockPlane) -> None:
    with connect(served.socket) as link:
        link.send(WRITE, 0, data=b"x")
        link.send(DISCONNECT)
        link.answer(1)
        assert link.hung_up
    assert served.device()["counters"]["hang_ups"] == 0
