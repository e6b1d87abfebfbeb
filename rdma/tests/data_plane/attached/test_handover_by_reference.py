"""A guest goes from one data plane to another, and its pages stay with their lender: none of them is copied."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pondstack_rack.wait import wait_until

from ..handover import Handover, tell
from ..lenders import LEASE_BYTES, Lender
from ..processes import DEADLINE_SECONDS, GUEST, DataPlane, RefusedError, StandinGuest
from .test_handover import LIMIT_MIB, MIB, guests, other
from .test_lenders import await_store
from .test_pager import await_count, await_quiet

__all__ = ["guests", "other"]
Guests = Callable[..., StandinGuest]

COUNT = 2
"""Buffers: room for all of the guest."""


class SharedLender(Lender):
    """A lender that makes keys of the same buffers for two hosts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "lender1@a")
        for _ in range(COUNT):
            self.process.ask("register", size_bytes=LEASE_BYTES)

    def lease(self, plane: DataPlane, host: str, **flags: bool) -> None:
        """Have a host's data plane use new keys of all buffers."""
        ticket = self.process.ask("admit", borrower=host)
        keys = [
            {**self.process.ask("export", region=index, borrower=host), "buffer": str(index), **flags}
            for index in range(COUNT)
        ]
        plane.ask(verb="lease", guest=GUEST, lender=self.name, ticket=ticket, keys=keys, deadline_ms=20_000)


@pytest.fixture
def lender(tmp_path: Path) -> Iterator[SharedLender]:
    made = SharedLender(tmp_path)
    yield made
    made.close()


class Move(Handover):
    """A hand-over whose source tells with which lenders pages are."""

    def attach(self, guest: Any, mirror: Path, limit_mib: int, port: int, /, **settings: Any) -> dict[str, Any]:
        """Have the destination attach the guest that comes."""
        where = {"host": "127.0.0.1", "port": port, "key": self.key, "deadline_ms": self.deadline_ms}
        return super().attach(
            guest, mirror, limit_mib, port, **({"incoming": {**where, "references": True}} | settings)
        )


@pytest.fixture
def served(plane: DataPlane, guests: Guests, lender: SharedLender, tmp_path: Path) -> StandinGuest:
    """A guest of the source, most of whose pages are with the lender."""
    made = guests(works=True, pattern="skewed")
    plane.attach(made, tmp_path / "mirror", MIB)
    lender.lease(plane, "host1")
    plane.ask(verb="limit", guest=GUEST, limit_mib=LIMIT_MIB)
    await_store(plane, "lender_reads", 500)
    # Tests want to see more than 1000 stay there, and some come home before the guest is stopped.
    assert wait_until(lambda: plane.view()["evicted_pages"] > 1100, DEADLINE_SECONDS)
    return made


def begin(move: Move, guests: Guests, lender: SharedLender, mirror: Path, shared: Path | None = None) -> StandinGuest:
    """Have the destination be ready for the guest; `shared`: where it finds the source's mirror."""
    comes = guests(works=False)
    port = move.offer()
    where = {"host": "127.0.0.1", "port": port, "key": move.key, "deadline_ms": move.deadline_ms, "references": True}
    move.attach(comes, mirror, LIMIT_MIB, port, incoming={**where, **({"mirror": str(shared)} if shared else {})})
    lender.lease(move.destination, "host2", handed=True)
    return comes


def states(plane: DataPlane) -> set[str]:
    """Return the states of its leases."""
    return {lease["state"] for lease in plane.view()["leases"]}


def test_no_remote_page_is_copied(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, lender: SharedLender, tmp_path: Path
) -> None:
    """The destination reads of the lender with keys of its own, and writes there once it is told of the switch."""
    move = Move(plane, other)
    comes = begin(move, guests, lender, tmp_path / "mirror-2")
    served.stop()
    before = plane.view()
    tell(served, comes)
    comes.begin()
    move.await_destination("complete")
    sent, store = plane.view()["handover"], other.view()["store"]
    assert (sent["stored_pages"], sent["lent_pages"]) == (0, 0)
    assert sent["told_pages"] >= before["evicted_pages"] > 1000
    assert store["handed"] > 1000
    assert (store["copied_stored"], store["handed_copied"], store["corrupt"], store["lender_writes"]) == (0, 0, 0, 0)
    assert store["copied_resident"] <= before["resident_pages"]
    assert states(other) == {"handed"}
    move.switch()
    served.kill()
    move.await_all()
    assert states(other) == {"active"}
    await_store(other, "lender_writes", 100)
    await_store(other, "lender_reads", 100)
    assert other.view()["store"]["corrupt"] == 0
    assert not (tmp_path / "mirror").exists()
    other.detach()
    assert comes.finish()["wrong"] == 0


def test_mirrors_that_are_shared(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, lender: SharedLender, tmp_path: Path
) -> None:
    """The mirror of what stays with the lender is copied of the source's file: the lender is not read for it."""
    move = Move(plane, other)
    comes = begin(move, guests, lender, tmp_path / "mirror-2", tmp_path / "mirror")
    served.stop()
    tell(served, comes)
    other.ask(verb="take_over", guest=GUEST)
    move.await_destination("complete")
    store = other.view()["store"]
    assert store["mirror_copied"] == store["handed"] > 1000
    assert (store["lender_reads"], store["handed_copied"], store["copied_stored"], store["corrupt"]) == (0, 0, 0, 0)
    move.switch()
    served.kill()
    move.await_all()
    lender.process.kill()
    comes.begin()
    await_store(other, "mirror_reads", 500)
    other.detach()
    assert comes.finish()["wrong"] == 0, "it is all in its own mirror"


@pytest.mark.parametrize("another", ["none", "zeros", "short"])
def test_a_mirror_that_is_not_the_sources(
    plane: DataPlane,
    other: DataPlane,
    served: StandinGuest,
    guests: Guests,
    lender: SharedLender,
    tmp_path: Path,
    another: str,
) -> None:
    """A file of that name is believed by nothing but its content."""
    file = tmp_path / "another"
    if another != "none":
        file.write_bytes(b"")
        os.truncate(file, (MIB if another == "zeros" else 1) * 2**20)
    move = Move(plane, other)
    comes = begin(move, guests, lender, tmp_path / "mirror-2", file)
    served.stop()
    tell(served, comes)
    other.ask(verb="take_over", guest=GUEST)
    move.await_destination("complete")
    store = other.view()["store"]
    assert store["mirror_copied"] == 0
    assert store["lender_reads"] == store["handed"] > 1000
    move.switch()
    served.kill()
    move.await_all()
    lender.process.kill()
    other.detach()
    assert comes.finish()["wrong"] == 0


def test_there_and_back(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, lender: SharedLender, tmp_path: Path
) -> None:
    """What was sealed by three tenures is read, and none of it is copied the second time either."""
    first = Move(plane, other)
    comes = begin(first, guests, lender, tmp_path / "mirror-2")
    served.stop()
    tell(served, comes)
    comes.begin()
    first.switch()
    served.kill()
    first.await_all()
    await_store(other, "lender_writes", 500)
    back = Move(other, plane)
    last = guests(works=False)
    back.attach(last, tmp_path / "mirror-3", LIMIT_MIB, back.offer())
    lender.lease(plane, "host1", handed=True)
    comes.stop()
    tell(comes, last)
    last.begin()
    back.switch()
    comes.kill()
    back.await_all()
    store = plane.view()["store"]
    assert store["handed"] > 500
    assert (store["handed_copied"], store["corrupt"]) == (0, 0)
    plane.detach()
    assert last.finish()["wrong"] == 0


def test_withdrawn(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, lender: SharedLender, tmp_path: Path
) -> None:
    """The source's guest goes on with its lender, where nobody has written meanwhile."""
    move = Move(plane, other)
    comes = begin(move, guests, lender, tmp_path / "mirror-2")
    other.ask(verb="take_over", guest=GUEST)
    move.await_destination("complete")
    await_quiet(plane)
    plane.ask(verb="withdraw", guest=GUEST)
    await_store(plane, "lender_reads", 500)
    await_store(plane, "lender_writes", 500)
    assert plane.view()["store"]["corrupt"] == 0
    comes.kill()
    assert wait_until(lambda: not other.ask(verb="view")["guests"], DEADLINE_SECONDS)
    assert wait_until(lambda: "handover" not in plane.view(), DEADLINE_SECONDS)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_lender_that_the_destination_cannot_reach(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, tmp_path: Path
) -> None:
    """Its pages come from the source, and are counted as what they are."""
    move = Move(plane, other)
    comes = guests(works=False)
    move.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, move.offer())
    served.stop()
    other.ask(verb="take_over", guest=GUEST)
    move.await_destination("complete")
    sent, store = plane.view()["handover"], other.view()["store"]
    assert sent["lent_pages"] == store["handed_copied"] == store["copied_stored"] > 1000
    assert store["handed"] == 0
    move.switch()
    move.await_all()
    tell(served, comes)
    other.detach()
    assert comes.finish()["wrong"] == 0


def test_a_lender_dies_before_the_mirror_is_there(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, lender: SharedLender, tmp_path: Path
) -> None:
    """The source has all pages until the destination says that it has them: they are copied then."""
    move = Move(plane, other)
    comes = begin(move, guests, lender, tmp_path / "mirror-2")
    served.stop()
    with lender.process.frozen():
        lender.process.kill()
    other.ask(verb="take_over", guest=GUEST)
    move.await_destination("complete")
    move.switch()
    move.await_all()
    tell(served, comes)
    other.detach()
    assert comes.finish()["wrong"] == 0


@pytest.mark.parametrize("point", ["adopting:1", "mapped:1", "referred:1", "mirrored:9", "complete:1"])
def test_the_destination_is_killed(
    point: str,
    plane: DataPlane,
    other: DataPlane,
    served: StandinGuest,
    guests: Guests,
    lender: SharedLender,
    tmp_path: Path,
) -> None:
    """The next process goes on: with the source's pages, and with the lender's once it is told of its keys again."""
    other.stop()
    other.start(PONDSTACK_CRASH_AT=point)
    other.await_ready()
    move = Move(plane, other)
    comes = begin(move, guests, lender, tmp_path / "mirror-2")
    served.stop()
    with contextlib.suppress(RefusedError):
        other.ask(verb="take_over", guest=GUEST)
    other.await_end()
    other.start()
    other.await_ready()
    with contextlib.suppress(RefusedError):  # it may have taken all by then
        lender.lease(other, "host2", handed=True)
    move.switch()
    move.await_all()
    assert other.view()["store"]["corrupt"] == 0
    tell(served, comes)
    comes.begin()
    await_count(other, "loads", other.view()["counters"]["loads"] + 100)
    other.detach()
    assert comes.finish()["wrong"] == 0


@pytest.mark.parametrize("point", ["tenure:1", "answering:3"])
def test_the_source_is_killed(
    point: str,
    plane: DataPlane,
    other: DataPlane,
    served: StandinGuest,
    guests: Guests,
    lender: SharedLender,
    tmp_path: Path,
) -> None:
    """Its next process does not know where pages are, and gives what the destination has not read yet."""
    plane.stop()
    plane.start(PONDSTACK_CRASH_AT=point)
    plane.await_ready()
    lender.lease(plane, "host1")
    await_store(plane, "lender_writes", 500)
    move = Move(plane, other)
    comes = begin(move, guests, lender, tmp_path / "mirror-2")
    served.stop()
    other.ask(verb="take_over", guest=GUEST)
    plane.await_end()
    plane.start()
    plane.await_ready()
    move.await_destination("complete")
    move.switch()
    move.await_all()
    assert other.view()["store"]["corrupt"] == 0
    tell(served, comes)
    other.detach()
    assert comes.finish()["wrong"] == 0


def test_a_side_is_killed_while_mirrors_are_copied(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, lender: SharedLender, tmp_path: Path
) -> None:
    """The destination's next process goes on with the same file; where the source's one dies, lenders are read."""
    other.stop()
    other.start(PONDSTACK_CRASH_AT="mirrored:3")
    other.await_ready()
    move = Move(plane, other)
    comes = begin(move, guests, lender, tmp_path / "mirror-2", tmp_path / "mirror")
    served.stop()
    tell(served, comes)
    with contextlib.suppress(RefusedError):  # it may be dead before it has answered
        other.ask(verb="take_over", guest=GUEST)
    other.await_end()
    plane.kill()
    plane.start()
    other.start()
    for each in (plane, other):
        each.await_ready()
    with contextlib.suppress(RefusedError):  # it may have taken all by then
        lender.lease(other, "host2", handed=True)
    move.await_destination("complete")
    move.switch()
    served.kill()
    move.await_all()
    assert other.view()["store"]["corrupt"] == 0
    lender.process.kill()
    other.detach()
    assert comes.finish()["wrong"] == 0


def test_mirrors_that_are_not_sealed_are_not_copied(
    plane: DataPlane, other: DataPlane, guests: Guests, lender: SharedLender, tmp_path: Path
) -> None:
    """Nobody could tell the source's file from another one of that name."""
    source = guests(works=True, pattern="skewed")
    plane.attach(source, tmp_path / "mirror", MIB, sealed=False)
    lender.lease(plane, "host1")
    plane.ask(verb="limit", guest=GUEST, limit_mib=LIMIT_MIB)
    await_store(plane, "lender_reads", 500)
    move = Move(plane, other)
    comes, port = guests(works=False), move.offer()
    where = {"host": "127.0.0.1", "port": port, "key": move.key, "references": True, "mirror": str(tmp_path / "mirror")}
    move.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, port, incoming=where, sealed=False)
    lender.lease(other, "host2", handed=True)
    source.stop()
    tell(source, comes)
    other.ask(verb="take_over", guest=GUEST)
    move.await_destination("complete")
    assert other.view()["store"]["mirror_copied"] == 0
    move.switch()
    source.kill()
    move.await_all()
    other.detach()
    assert comes.finish()["wrong"] == 0
