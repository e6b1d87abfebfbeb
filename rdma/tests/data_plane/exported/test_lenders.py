"""A device with pages in the memory of lenders: frozen, killed, left, and not to be trusted."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until

from ...harness import TIMEOUT_SECONDS
from ..lenders import LEASE_BYTES, Lender
from ..processes import BLOCK, DEADLINE_SECONDS, BlockPlane
from .client import TRIM, Nbd, connect

MIB, PAGE = 2**20, 4096

Lenders = Callable[[str], Lender]


@pytest.fixture
def lender(tmp_path: Path) -> Iterator[Lenders]:
    started: list[Lender] = []

    def start(name: str) -> Lender:
        started.append(Lender(tmp_path, name, block=BLOCK))
        return started[-1]

    yield start
    for each in started:
        each.close()


def fill(link: Nbd) -> bytes:
    """Write 2 MiB."""
    data = os.urandom(2 * MIB)
    for at in range(0, len(data), 256 * 1024):
        link.write(at, data[at : at + 256 * 1024])
    return data


def content(link: Nbd) -> bytes:
    """Read 2 MiB."""
    return b"".join(link.read(at, 256 * 1024) for at in range(0, 2 * MIB, 256 * 1024))


def test_pages_come_from_a_frozen_lender(plane: BlockPlane, lender: Lenders) -> None:
    """It was frozen before the first page was written."""
    plane.export(2)
    lends = lender("lender1")
    lends.lend(plane)
    with connect(plane.socket) as link, lends.process.frozen():
        data = fill(link)
        assert content(link) == data
        store = plane.device()["store"]
        assert (store["lender_reads"], store["mirror_reads"], lends.used(plane)) == (512, 0, 512)
        link.change(TRIM, 0, MIB)
        assert lends.used(plane) == 256
        assert content(link) == bytes(MIB) + data[MIB:]


def test_the_pages_written_last_are_with_the_lender(plane: BlockPlane, lender: Lenders) -> None:
    """Of 6 MiB there is room for 4: what was written first sinks to the mirror, and rises when it is written again."""
    plane.export(6)
    lends = lender("lender1")
    lends.lend(plane)

    def reads() -> tuple[int, int]:
        store = plane.device()["store"]
        return store["lender_reads"], store["mirror_reads"]

    with connect(plane.socket) as link:
        parts = [os.urandom(256 * 1024) for _ in range(24)]
        for at, part in enumerate(parts):
            link.write(at * len(part), part)
        assert (plane.device()["store"]["sunk"], lends.used(plane)) == (512, 1024)
        assert [link.read(at * 256 * 1024, 256 * 1024) for at in range(8, 24)] == parts[8:]
        assert reads() == (1024, 0)
        assert link.read(0, 256 * 1024) == parts[0]
        assert reads() == (1024, 64)
        link.write(0, parts[1])
        assert link.read(0, 256 * 1024) == parts[1]
        assert reads() == (1088, 64)
        assert link.read(8 * 256 * 1024, 256 * 1024) == parts[8]
        assert reads() == (1088, 128)


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plain"])
def test_a_lender_is_killed(plane: BlockPlane, lender: Lenders, sealed: bool) -> None:
    plane.export(2, sealed=sealed)
    lends = lender("lender1")
    lends.lend(plane)
    with connect(plane.socket) as link:
        data = fill(link)
        lends.process.kill()
        assert content(link) == data
        assert content(link) == data
        assert plane.device()["leases"][0]["state"] == "lost"
        data = fill(link)
        assert content(link) == data


def test_a_key_is_revoked_without_a_word(plane: BlockPlane, lender: Lenders) -> None:
    """As a lender does that waited too long; the mirror serves, and the other key is used on."""
    plane.export(2)
    lends = lender("lender1")
    lends.lend(plane, 2)
    with connect(plane.socket) as link:
        data = fill(link)
        lends.process.ask("revoke", number=0)
        assert content(link) == data
        assert plane.device()["store"]["mirror_reads"] > 0
        data = fill(link)
        assert content(link) == data
        assert sorted(each["state"] for each in plane.device()["leases"]) == ["active", "lost"]


def test_the_data_plane_is_killed(plane: BlockPlane, lender: Lenders) -> None:
    """Its links end with it: the mirror serves, and lenders again once it is told of leases."""
    plane.export(2)
    lends = lender("lender1")
    lends.lend(plane)
    with connect(plane.socket) as link:
        data = fill(link)
    plane.restart()
    with connect(plane.socket) as link:
        assert content(link) == data
        assert plane.device()["store"]["mirror_reads"] == 512
        lends.lend(plane, 0)
        data = fill(link)
        assert content(link) == data
        assert plane.device()["store"]["lender_reads"] == 512


def test_a_lease_is_left(plane: BlockPlane, lender: Lenders) -> None:
    plane.export(2)
    lends = lender("lender1")
    lends.lend(plane, 2)
    with connect(plane.socket) as link:
        data = fill(link)
        left, stays = (key.number for key in lends.keys)
        plane.ask(verb="leave", block=BLOCK, lender="lender1", numbers=[left, 4711])
        assert wait_until(lambda: [each["number"] for each in plane.device()["leases"]] == [stays], DEADLINE_SECONDS)
        assert content(link) == data
        assert 0 < lends.used(plane) < 512


def test_a_lender_changes_pages(plane: BlockPlane, lender: Lenders) -> None:
    """It is noticed, and the mirror's page is taken."""
    plane.export(2)
    lends = lender("lender1")
    lends.lend(plane)
    dice = random.Random(20193)
    with connect(plane.socket) as link:
        data = fill(link)
        with lends.transport.connect(lends.ticket, TIMEOUT_SECONDS) as attacker:
            for _ in range(3000):
                attacker.write(lends.keys[0], dice.randrange(LEASE_BYTES), b"x")
        assert content(link) == data
        assert plane.device()["store"]["corrupt"] > 100
