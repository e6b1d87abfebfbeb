"""Links of the whole data plane: made while a lender is awake, used when it could not be connected to any more."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pondstack_rack.wait import wait_until

from ..exported.client import connect
from ..lenders import Lender
from ..processes import BLOCK, DEADLINE_SECONDS, GUEST, BlockPlane, RefusedError, StandinGuest
from .test_lenders import await_store, states

MIB = 2**20
Guests = Callable[..., StandinGuest]


@pytest.fixture
def plane(programs: tuple[Path, Path], tmp_path: Path) -> Iterator[BlockPlane]:
    """One that runs."""
    made = BlockPlane(programs[0], tmp_path / "plane")
    made.start()
    made.await_ready()
    yield made
    made.close()


@pytest.fixture(params=["shm"])
def lender(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lender]:
    made = Lender(tmp_path, "lender1@a", request.param)
    yield made
    made.close()


def links(plane: BlockPlane) -> list[dict[str, Any]]:
    """Return what it tells of its links."""
    found: list[dict[str, Any]] = plane.ask(verb="view")["links"]
    return found


def test_a_lender_frozen_before_the_first_byte_was_borrowed(
    plane: BlockPlane, guest: Guests, lender: Lender, tmp_path: Path
) -> None:
    """It serves the guest's pages. Then the data plane is killed with -9, and the mirror serves them."""
    lender.make(2, located=True)
    lender.connect(plane)
    with lender.process.frozen():
        served = guest(8)
        plane.attach(served, tmp_path / "mirror", 8)
        lender.disclose(plane)
        plane.ask(verb="limit", guest=GUEST, limit_mib=2)
        await_store(plane, "lender_reads", 1000)
        assert plane.view()["store"]["mirror_reads"] == plane.view()["store"]["corrupt"] == 0
        assert lender.used(plane) > 1000
        plane.restart()
        assert links(plane) == []
        with pytest.raises(RefusedError, match="there is no link to lender lender1@a"):
            lender.disclose(plane)
        await_store(plane, "mirror_reads", 1000)
        assert plane.view()["store"]["corrupt"] == 0
    lender.connect(plane)  # it is awake
    lender.disclose(plane)
    await_store(plane, "lender_reads", 500)
    plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("lender", ["shm", "tcp"], indirect=True)
def test_a_link_of_a_guest_and_a_block_device(plane: BlockPlane, guest: Guests, lender: Lender, tmp_path: Path) -> None:
    """They share it; both are told when it fails."""
    lender.make(2, located=True)
    lender.connect(plane)
    lender.connect(plane)  # told once more
    served = guest(8)
    plane.attach(served, tmp_path / "guest-mirror", 2)
    plane.export(2)
    lender.disclose(plane, 0)
    lender.disclose(plane, 1, block=BLOCK)
    assert [(link["lender"], link["state"], link["users"]) for link in links(plane)] == [("lender1@a", "connected", 2)]
    with pytest.raises(RefusedError, match="used by 2 guests and block devices"):
        plane.ask(verb="disconnect", lender=lender.name)
    with connect(plane.socket) as link:
        for _ in range(4):
            data = os.urandom(2 * MIB)
            for at in range(0, len(data), 256 * 1024):
                link.write(at, data[at : at + 256 * 1024])
            assert b"".join(link.read(at, 256 * 1024) for at in range(0, len(data), 256 * 1024)) == data
        assert plane.device()["store"]["mirror_reads"] == 0
        await_store(plane, "lender_reads", 500)
        lender.process.kill()
        # The device is not used meanwhile: it is told.
        assert wait_until(lambda: {each["state"] for each in plane.device()["leases"]} == {"lost"}, DEADLINE_SECONDS)
        assert b"".join(link.read(at, 256 * 1024) for at in range(0, len(data), 256 * 1024)) == data
    assert wait_until(lambda: states(plane) == {("lender1@a", "lost")}, DEADLINE_SECONDS)
    for borrower in ({"guest": GUEST}, {"block": BLOCK}):
        plane.ask(verb="leave", **borrower, lender=lender.name, numbers=[key.number for key in lender.keys])
    assert wait_until(lambda: links(plane) == [], DEADLINE_SECONDS), links(plane)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_lost_link_is_made_anew(plane: BlockPlane, lender: Lender, tmp_path: Path) -> None:
    """While leases of the former one are not left yet; each of the two is let go of."""
    lender.make(1, located=True)
    lender.connect(plane)
    plane.export(2)
    lender.disclose(plane, block=BLOCK)
    lender.process.kill()
    assert wait_until(lambda: [link["state"] for link in links(plane)] == ["lost"], DEADLINE_SECONDS)
    again = Lender(tmp_path / "again", lender.name)
    try:
        again.make(2, located=True)
        again.connect(plane)
        again.disclose(plane, 1, block=BLOCK)
        assert sorted(lease["state"] for lease in plane.device()["leases"]) == ["active", "lost"]
        plane.ask(verb="leave", block=BLOCK, lender=lender.name, numbers=[again.keys[1].number, lender.keys[0].number])
        assert wait_until(lambda: plane.device()["leases"] == [], DEADLINE_SECONDS)
        assert [(link["state"], link["users"]) for link in links(plane)] == [("connected", 0)]
        assert plane.ask(verb="disconnect", lender=lender.name) == {"links": []}
        assert plane.ask(verb="disconnect", lender=lender.name) == {"links": []}
    finally:
        again.close()


@pytest.mark.parametrize("wrong", [{"fd": 0}, {"fd": -1}, {"fd": 2**40}, {"slot": 8192}, {"slot": -1}, {"slot": 17}])
def test_a_location_that_is_none(wrong: dict[str, int], plane: BlockPlane, lender: Lender) -> None:
    """Nothing but a lent region is opened, and only while its key lives."""
    lender.make(1, located=True)
    lender.connect(plane)
    plane.export(2)
    key = lender.keys[0].to_dict()
    key["location"] = {**key["location"], **wrong}
    with pytest.raises(RefusedError, match="opens nothing that can be used"):
        plane.ask(verb="lease", block=BLOCK, lender=lender.name, keys=[key])
    with pytest.raises(RefusedError, match="does not say where its region is"):  # and no ticket
        plane.ask(verb="lease", block=BLOCK, lender=lender.name, keys=[{**key, "location": None}])
    lender.disclose(plane, block=BLOCK)
    assert [lease["state"] for lease in plane.device()["leases"]] == ["active"]
