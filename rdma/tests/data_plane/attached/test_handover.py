"""A guest goes from one data plane to another: no word is wrong, and until the switch its source can have it back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until

from ..handover import Handover, tell
from ..processes import DEADLINE_SECONDS, GUEST, DataPlane, RefusedError, StandinGuest
from .test_pager import await_count

MIB, LIMIT_MIB = 8, 2
Guests = Callable[..., StandinGuest]


@pytest.fixture
def other(programs: tuple[Path, Path], tmp_path: Path) -> Iterator[DataPlane]:
    """The destination."""
    made = DataPlane(programs[0], tmp_path / "other" / "plane")
    made.folder.parent.mkdir()
    made.start()
    made.await_ready()
    yield made
    made.stop()


@pytest.fixture
def guests(programs: tuple[Path, Path], tmp_path: Path) -> Iterator[Guests]:
    """Start guests that tell each other what they have written."""
    started: list[StandinGuest] = []

    def start(*, works: bool, pattern: str = "random") -> StandinGuest:
        versions = tmp_path / "versions"
        started.append(StandinGuest(programs[1], MIB, pattern=pattern, works=works, versions=versions))
        return started[-1]

    yield start
    for each in started:
        each.kill()


@pytest.fixture
def served(plane: DataPlane, guests: Guests, tmp_path: Path) -> StandinGuest:
    """A guest of the source, most of whose pages are in the store."""
    made = guests(works=True, pattern="skewed")
    plane.attach(made, tmp_path / "mirror", LIMIT_MIB)
    await_count(plane, "loads", 1000)
    return made


def test_no_word_is_wrong(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, tmp_path: Path
) -> None:
    """The destination's guest works at once; the source's process ends while its pages are still wanted."""
    handover = Handover(plane, other)
    port = handover.offer()
    assert handover.offer() == port
    comes = guests(works=False)
    handover.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, port)
    handover.await_destination("waiting")
    assert wait_until(lambda: other.view()["handover"]["connected"], DEADLINE_SECONDS, 0.01)
    served.stop()
    tell(served, comes)
    comes.begin()
    handover.switch()
    served.kill()
    handover.await_all()
    await_count(other, "loads", other.view()["counters"]["loads"] + 500)
    assert "incoming" not in other.view()
    assert not (tmp_path / "mirror").exists()
    other.detach()
    assert comes.finish()["wrong"] == 0


def test_taken_over_by_an_order(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, tmp_path: Path
) -> None:
    """Nobody there touches its memory: all of it comes all the same, what was resident to local memory."""
    handover = Handover(plane, other)
    comes = guests(works=False)
    handover.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, handover.offer())
    served.stop()
    before = plane.view()
    with pytest.raises(RefusedError, match="is not frozen"):
        plane.ask(verb="switched", guest=GUEST)
    other.ask(verb="take_over", guest=GUEST)
    handover.await_destination("complete")
    assert plane.view()["handover"]["state"] == "frozen"
    sent = plane.view()["handover"]
    assert sent["resident_pages"] + sent["stored_pages"] == before["resident_pages"] + before["evicted_pages"]
    handover.switch()
    handover.await_all()
    view = other.view()
    assert view["resident_pages"] + view["evicted_pages"] == before["resident_pages"] + before["evicted_pages"]
    tell(served, comes)
    other.detach()
    assert comes.finish()["wrong"] == 0


def test_withdrawn(plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, tmp_path: Path) -> None:
    """Frozen, the source's guest reads and does not write; it goes on where it was, and may be offered anew."""
    handover = Handover(plane, other)
    comes = guests(works=False)
    handover.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, handover.offer())
    other.ask(verb="take_over", guest=GUEST)
    handover.await_destination("complete")
    faults = plane.view()["counters"]["faults"]
    with pytest.raises(RefusedError, match="is being handed over"):
        plane.ask(verb="detach", guest=GUEST)
    plane.ask(verb="withdraw", guest=GUEST)
    await_count(plane, "faults", faults + 500)
    comes.kill()
    assert wait_until(lambda: not other.ask(verb="view")["guests"], DEADLINE_SECONDS)
    assert "handover" not in plane.view()
    again, comes = Handover(plane, other), guests(works=False)
    again.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, again.offer())
    served.stop()
    other.ask(verb="take_over", guest=GUEST)
    again.switch()
    again.await_all()
    tell(served, comes)
    other.detach()
    assert comes.finish()["wrong"] == 0
