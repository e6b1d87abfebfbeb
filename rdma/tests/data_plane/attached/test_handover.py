"""A guest goes from one data plane to another: no word is wrong, and until the switch its source can have it back."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pondstack_rack.servers.base import free_port
from pondstack_rack.wait import wait_until

from ..handover import Handover, tell
from ..processes import DEADLINE_SECONDS, GUEST, REST_US, DataPlane, RefusedError, StandinGuest
from .test_pager import await_count, await_quiet

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


def take_over_and_die(destination: DataPlane) -> None:
    """Have a destination take the guest over that has a point of the code to die at, maybe before it can answer."""
    with contextlib.suppress(RefusedError):
        destination.ask(verb="take_over", guest=GUEST)


@pytest.fixture
def guests(programs: tuple[Path, Path], tmp_path: Path) -> Iterator[Guests]:
    """Start guests that tell each other what they have written."""
    started: list[StandinGuest] = []

    def start(*, works: bool, pattern: str = "random") -> StandinGuest:
        versions = tmp_path / "versions"
        made = StandinGuest(programs[1], MIB, pattern=pattern, works=works, versions=versions, rest_us=REST_US)
        started.append(made)
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
    await_quiet(plane)  # who writes waits
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


@pytest.mark.parametrize("point", ["recorded", "freezing", "frozen", "answering"])
def test_the_source_is_killed_before_the_switch(
    point: str, plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, tmp_path: Path
) -> None:
    """The next process goes on with the hand-over, and nobody has written meanwhile; it can have its guest back."""
    plane.stop()
    plane.start(PONDSTACK_CRASH_AT=f"{point}:{3 if point == 'answering' else 1}")
    plane.await_ready()
    handover = Handover(plane, other)
    port = free_port()
    comes = guests(works=False)
    with contextlib.suppress(RefusedError):  # at `recorded` it dies before it answers
        handover.offer(port=port)
    if point != "recorded":
        handover.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, port)
        other.ask(verb="take_over", guest=GUEST)
    plane.await_end()
    plane.start()
    plane.await_ready()
    assert handover.offer(port=port) == port
    if point == "recorded":
        handover.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, port)
        other.ask(verb="take_over", guest=GUEST)
    handover.await_destination("complete")
    await_quiet(plane)  # who writes waits
    faults = plane.view()["counters"]["faults"]
    plane.ask(verb="withdraw", guest=GUEST)
    await_count(plane, "faults", faults + 500)
    comes.kill()
    assert "handover" not in plane.view()
    plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("killed", [(), ("source",), ("source", "destination")], ids="-".join)
@pytest.mark.parametrize("frozen", [False, True], ids=["offered", "frozen"])
def test_its_process_ends_before_the_switch(
    *,
    frozen: bool,
    killed: tuple[str, ...],
    plane: DataPlane,
    other: DataPlane,
    served: StandinGuest,
    guests: Guests,
    tmp_path: Path,
) -> None:
    """As libvirt has it end, before anybody can order the switch: the guest is its destination's, with all pages."""
    other.stop()
    other.start(PONDSTACK_CRASH_AT="fetched:3")
    other.await_ready()
    handover = Handover(plane, other)
    comes = guests(works=False)
    handover.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, handover.offer())
    served.stop()
    tell(served, comes)
    if frozen:
        take_over_and_die(other)
        handover.await_source("frozen")
    if "source" in killed:
        plane.kill()
    if "destination" in killed:
        other.kill()
    served.kill()
    if "source" in killed:
        plane.start()
        plane.await_ready()
    handover.await_source("switched")
    comes.begin()
    if not frozen and "destination" not in killed:
        other.await_end()
    other.kill()
    other.start()
    handover.await_all()
    assert not (tmp_path / "mirror").exists()
    other.detach()
    assert comes.finish()["wrong"] == 0


def test_given_up_after_its_process_ended(plane: DataPlane, served: StandinGuest, tmp_path: Path) -> None:
    """Nobody came for it: an order ends what is kept."""
    handover = Handover(plane, plane)
    handover.offer()
    served.kill()
    handover.await_source("switched")
    with pytest.raises(RefusedError, match="destination's since the switch"):
        plane.ask(verb="withdraw", guest=GUEST)
    plane.ask(verb="forget", guest=GUEST)
    assert wait_until(lambda: not plane.ask(verb="view")["guests"], DEADLINE_SECONDS, 0.01)
    assert not (tmp_path / "mirror").exists()


@pytest.mark.parametrize("point", ["taking:1", "mapped:1", "fetched:9", "filled:9", "complete:1", "told:1"])
def test_the_destination_is_killed(
    point: str, plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, tmp_path: Path
) -> None:
    """The next process goes on with what has come, before the switch and after it."""
    other.stop()
    other.start(PONDSTACK_CRASH_AT=point)
    other.await_ready()
    handover = Handover(plane, other)
    comes = guests(works=False)
    handover.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, handover.offer())
    served.stop()
    take_over_and_die(other)
    if point == "told:1":
        handover.switch()
    other.await_end()
    other.start()
    other.await_ready()
    if point != "told:1":
        handover.switch()
        handover.await_all()
    tell(served, comes)
    comes.begin()
    await_count(other, "loads", other.view()["counters"]["loads"] + 100)
    if point != "told:1":
        other.detach()
    assert comes.finish()["wrong"] == 0


@pytest.mark.parametrize("point", ["recorded as switched", "switched"])
def test_the_source_is_killed_at_the_switch(
    point: str, plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, tmp_path: Path
) -> None:
    """The next process serves the destination, although the guest's own process has ended as well."""
    plane.stop()
    plane.start(PONDSTACK_CRASH_AT=f"{point}:1")
    plane.await_ready()
    other.stop()
    other.start(PONDSTACK_CRASH_AT="fetched:3")
    other.await_ready()
    handover = Handover(plane, other)
    comes = guests(works=False)
    handover.attach(comes, tmp_path / "mirror-2", LIMIT_MIB, handover.offer())
    served.stop()
    tell(served, comes)
    take_over_and_die(other)
    other.await_end()
    if point == "switched":
        handover.switch()
        served.kill()
        plane.kill()
    else:
        with pytest.raises(RefusedError):
            handover.switch()
        plane.await_end()
    plane.start()
    plane.await_ready()
    assert plane.view()["handover"]["state"] == "switched"
    served.kill()
    other.start()
    comes.begin()
    handover.await_all()
    assert not (tmp_path / "mirror").exists()
    other.detach()
    assert comes.finish()["wrong"] == 0


def test_the_source_is_killed_before_its_offer_is_on_record(plane: DataPlane, served: StandinGuest) -> None:
    """Its guest goes on, nothing is offered, and the keeper that nobody knows of ends."""
    plane.stop()
    plane.start(PONDSTACK_CRASH_AT="kept:1")
    plane.await_ready()
    with pytest.raises(RefusedError):
        Handover(plane, plane).offer()
    plane.await_end()
    plane.start()
    plane.await_ready()
    await_count(plane, "faults", 500)
    assert "handover" not in plane.view()
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_silent_destination(
    plane: DataPlane, other: DataPlane, served: StandinGuest, guests: Guests, tmp_path: Path
) -> None:
    """The source's guest goes on by itself."""
    handover = Handover(plane, other, deadline_ms=5000)
    handover.attach(guests(works=False), tmp_path / "mirror-2", LIMIT_MIB, handover.offer())
    other.ask(verb="take_over", guest=GUEST)
    handover.await_source("frozen")
    other.kill()
    faults = plane.view()["counters"]["faults"]
    await_count(plane, "faults", faults + 500)
    assert "handover" not in plane.view()
    plane.detach()
    assert served.finish()["wrong"] == 0


OFFERS: tuple[tuple[dict[str, object], str], ...] = (
    ({"key": "ab"}, "64 hexadecimal digits"),
    ({"key": "g" * 64}, "64 hexadecimal digits"),
    ({"host": "nowhere"}, "cannot be listened on"),
    ({"port": 65536}, "port: 0 to 65535"),
    ({"deadline_ms": 999}, "deadline_ms: 1000 to 600000"),
    ({"keys": 1}, "keys"),
)


@pytest.mark.usefixtures("served")
def test_what_is_no_offer(plane: DataPlane) -> None:
    for more, reason in OFFERS:
        with pytest.raises(RefusedError, match=reason):
            Handover(plane, plane).offer(**more)
    for verb in ("take_over", "forget", "switched"):
        with pytest.raises(RefusedError, match=r"does not come|was not switched|is not frozen"):
            plane.ask(verb=verb, guest=GUEST)
    assert "handover" not in plane.view()
