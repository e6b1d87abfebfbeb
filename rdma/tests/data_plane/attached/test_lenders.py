"""A process under the pager, with pages in the memory of lenders: frozen, killed, left, and not to be trusted."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until

from ...harness import TIMEOUT_SECONDS
from ..lenders import LEASE_BYTES, Lender
from ..processes import DEADLINE_SECONDS, GUEST, DataPlane, StandinGuest

Guests = Callable[..., StandinGuest]


DRIVERS = ("shm", "tcp")
"""Over verbs: tests/hardware/test_rdma.py, test_rdma_pager.py."""

SHORT_MS = 300
"""Of accesses to a lender that does not answer."""


@pytest.fixture(params=sorted(DRIVERS))
def lender(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Lender]]:
    started: list[Lender] = []

    def start(name: str, **how: int) -> Lender:
        started.append(Lender(tmp_path, name, request.param, **how))
        return started[-1]

    yield start
    for each in started:
        each.close()


def await_store(plane: DataPlane, name: str, more: int) -> None:
    """Wait until a counter of the store has grown by so much."""
    before = plane.view()["store"][name]
    assert wait_until(lambda: plane.view()["store"][name] >= before + more, DEADLINE_SECONDS), plane.view()


def states(plane: DataPlane) -> set[tuple[str, str]]:
    """Return the states in which leases of each lender are."""
    return {(lease["lender"], lease["state"]) for lease in plane.view()["leases"]}


@pytest.mark.parametrize("lender", ["shm"], indirect=True)
def test_pages_come_from_a_frozen_lender(
    plane: DataPlane, guest: Guests, lender: Callable[..., Lender], tmp_path: Path
) -> None:
    """It was frozen before the first page was evicted."""
    served, lends = guest(8), lender("lender1")
    plane.attach(served, tmp_path / "mirror", 8)
    lends.lend(plane, 2)
    with lends.process.frozen():
        plane.ask(verb="limit", guest=GUEST, limit_mib=2)
        await_store(plane, "lender_reads", 1000)
        assert plane.view()["store"]["mirror_reads"] == plane.view()["store"]["corrupt"] == 0
        assert lends.used(plane) > 1000
        plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("lender", ["tcp"], indirect=True)
def test_a_frozen_lender_has_a_deadline(
    plane: DataPlane, guest: Guests, lender: Callable[..., Lender], tmp_path: Path
) -> None:
    """Nothing of it is waited for twice: then the mirror serves, and the other lender."""
    served, lends, other = guest(8), lender("lender1", deadline_ms=SHORT_MS), lender("lender2")
    plane.attach(served, tmp_path / "mirror", 8)
    lends.lend(plane, 3)
    with lends.process.frozen():
        plane.ask(verb="limit", guest=GUEST, limit_mib=2)
        await_store(plane, "mirror_reads", 100)
        assert plane.view()["store"]["lender_writes"] == 0
        other.lend(plane)
        await_store(plane, "lender_reads", 500)
        assert other.used(plane) > 0
    assert wait_until(lambda: states(plane) == {("lender1", "lost"), ("lender2", "active")}, DEADLINE_SECONDS)
    plane.ask(verb="leave", guest=GUEST, lender="lender1", numbers=[key.number for key in lends.keys])
    assert wait_until(lambda: states(plane) == {("lender2", "active")}, DEADLINE_SECONDS)
    lends.deadline_ms = other.deadline_ms
    lends.lend(plane, 0)  # by a new connection
    assert wait_until(lambda: lends.used(plane) > 0, DEADLINE_SECONDS)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_lenders_share_the_pages(
    plane: DataPlane, guest: Guests, lender: Callable[..., Lender], tmp_path: Path
) -> None:
    served, both = guest(8), [lender("lender1"), lender("lender2")]
    plane.attach(served, tmp_path / "mirror", 2)
    for lends in both:
        lends.lend(plane)
    await_store(plane, "lender_reads", 1000)
    used = [lends.used(plane) for lends in both]
    assert min(used) > 0.7 * max(used) > 300
    plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plain"])
def test_a_lender_is_killed(
    sealed: bool, plane: DataPlane, guest: Guests, lender: Callable[..., Lender], tmp_path: Path
) -> None:
    """The mirror has its pages, and the other lender goes on."""
    served, first, second = guest(8), lender("lender1"), lender("lender2")
    plane.attach(served, tmp_path / "mirror", 2, sealed=sealed)
    first.lend(plane)
    second.lend(plane)
    await_store(plane, "lender_reads", 1000)
    first.process.kill()
    await_store(plane, "mirror_reads", 100)
    await_store(plane, "lender_reads", 500)
    assert states(plane) == {("lender1", "lost"), ("lender2", "active")}
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_the_data_plane_is_killed(
    plane: DataPlane, guest: Guests, lender: Callable[..., Lender], tmp_path: Path
) -> None:
    """Its links end with it: the mirror serves until it is told of leases again."""
    served, lends = guest(8), lender("lender1")
    plane.attach(served, tmp_path / "mirror", 2)
    lends.lend(plane)
    await_store(plane, "lender_reads", 500)
    plane.kill()
    plane.start()
    plane.await_ready()
    await_store(plane, "mirror_reads", 500)
    assert plane.view()["leases"] == []
    lends.lend(plane, 0)
    await_store(plane, "lender_reads", 500)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_lease_is_left(plane: DataPlane, guest: Guests, lender: Callable[..., Lender], tmp_path: Path) -> None:
    served, lends = guest(8), lender("lender1")
    plane.attach(served, tmp_path / "mirror", 2)
    lends.lend(plane, 2)
    await_store(plane, "lender_reads", 500)
    left, stays = (key.number for key in lends.keys)
    plane.ask(verb="leave", guest=GUEST, lender="lender1", numbers=[left])
    assert wait_until(lambda: [lease["number"] for lease in plane.view()["leases"]] == [stays], DEADLINE_SECONDS)
    await_store(plane, "lender_reads", 500)
    plane.ask(verb="leave", guest=GUEST, lender="lender1", numbers=[left, stays, 4711])
    assert wait_until(lambda: plane.view()["leases"] == [], DEADLINE_SECONDS)
    await_store(plane, "mirror_reads", 500)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_lender_changes_pages(plane: DataPlane, guest: Guests, lender: Callable[..., Lender], tmp_path: Path) -> None:
    """It is noticed, and the mirror's page is taken."""
    served, lends = guest(8), lender("lender1")
    plane.attach(served, tmp_path / "mirror", 2)
    lends.lend(plane)
    await_store(plane, "lender_reads", 500)
    dice = random.Random(20184)
    with lends.transport.connect(lends.ticket, TIMEOUT_SECONDS) as link:
        for _ in range(3000):
            link.write(lends.keys[0], dice.randrange(LEASE_BYTES), b"x")
    await_store(plane, "lender_reads", 500)
    assert plane.view()["store"]["corrupt"] > 100
    plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("what", ["ticket", "key"])
def test_what_a_lender_refuses(
    what: str, plane: DataPlane, guest: Guests, lender: Callable[..., Lender], tmp_path: Path
) -> None:
    served, lends = guest(4), lender("lender1")
    plane.attach(served, tmp_path / "mirror", 2)
    lends.ticket, key = lends.process.lend("host1", LEASE_BYTES)
    ticket, wrong = lends.ticket.to_dict(), key.to_dict()
    ticket |= {"secret": "00" * 16} if what == "ticket" else {}
    wrong |= {"token": "00" * 16} if what == "key" else {}
    with pytest.raises(Exception, match="lender lender1 refuses: this lender"):
        plane.ask(verb="lease", guest=GUEST, lender="lender1", ticket=ticket, keys=[wrong])
    lends.keys = [key]
    lends.lend(plane, 0)
    assert wait_until(lambda: lends.used(plane) > 0, DEADLINE_SECONDS)
    plane.detach()
    assert served.finish()["wrong"] == 0
