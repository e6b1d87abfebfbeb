"""What the agent builds on of a data plane: the same tests for the real one and for the stand-in of other tests."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pondstack.domain.errors import Conflict
from pondstack_agent.data_plane.client import ControlClient, DataPlane, DataPlaneGone, DataPlaneRefused
from pondstack_agent.data_plane.guest_memory import MEMFD, start_of
from pondstack_agent.data_plane.pager_settings import PagerSettings
from pondstack_agent.data_plane.views import GuestState, GuestView, LeaseState
from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.lenders import Lender
from rdma.tests.data_plane.processes import DEADLINE_SECONDS, MEMORY, StandinGuest
from rdma.tests.data_plane.processes import DataPlane as PlaneProcess

from .standin import StandinDataPlane

GUEST = "6f1c2d1e-0000-4000-8000-000000000001"
MIB, LIMIT = 8, 2
LENDER = "lender1@a"


class Bed(ABC):
    """A data plane, a guest of MIB whose memory is all touched, and a lender."""

    plane: DataPlane
    memory: str
    pid: int
    mirror: str

    def attach(self, limit_mib: int = LIMIT, pid: int = 0) -> GuestView:
        return self.plane.attach(GUEST, pid or self.pid, self.memory, self.mirror, limit_mib)

    def seen(self) -> GuestView:
        found = self.plane.view(GUEST)
        assert found
        return found

    @abstractmethod
    def keys(self, count: int, located: bool = False) -> list[dict[str, Any]]:
        """Have keys of the lender; `located`: that say where their regions are."""

    @abstractmethod
    def asleep(self) -> AbstractContextManager[None]:
        """Have the lender be frozen for a block."""

    @abstractmethod
    def ticket(self) -> dict[str, Any]:
        """Return the lender's ticket."""

    @abstractmethod
    def dead(self, key: dict[str, Any]) -> dict[str, Any]:
        """Return a key that the lender refuses."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the data plane with -9, and start it again."""

    @abstractmethod
    def down(self) -> None:
        """Kill it, and start none."""

    @abstractmethod
    def end_guest(self) -> None:
        """End the guest."""

    @abstractmethod
    def close(self) -> None:
        """Leave nothing behind."""


class PlayedBed(Bed):
    """Over the stand-in."""

    def __init__(self) -> None:
        self.plane: StandinDataPlane = StandinDataPlane()
        self.plane.boot(GUEST, MIB)
        self.memory, self.pid, self.mirror = MEMFD, 4711, "/mirrors/a"

    def keys(self, count: int, located: bool = False) -> list[dict[str, Any]]:
        where = {"location": {"fd": 3}} if located else {}
        return [{"number": number, **where} for number in range(1, count + 1)]

    @contextmanager
    def asleep(self) -> Iterator[None]:
        self.plane.asleep.add(LENDER)
        yield
        self.plane.asleep.clear()

    def ticket(self) -> dict[str, Any]:
        return {"driver": "shm"}

    def dead(self, key: dict[str, Any]) -> dict[str, Any]:
        self.plane.dead_keys.add((LENDER, key["number"]))
        return key

    def kill(self) -> None:
        self.plane.kill()

    def down(self) -> None:
        self.plane.gone = True

    def end_guest(self) -> None:
        self.plane.end(GUEST)

    def close(self) -> None:
        pass


class RealBed(Bed):
    """Over the program, with a process that stands in for a guest."""

    def __init__(self, programs: tuple[Path, Path], folder: Path) -> None:
        self.process = PlaneProcess(programs[0], folder / "plane")
        self.process.start()
        self.process.await_ready()
        self.plane = ControlClient(folder / "plane", DEADLINE_SECONDS)
        self.guest = StandinGuest(programs[1], MIB)
        self.lender = Lender(folder, "lender1")
        self.memory, self.pid, self.mirror = MEMORY, self.guest.pid, str(folder / "mirror")

    def keys(self, count: int, located: bool = False) -> list[dict[str, Any]]:
        self.lender.make(count, located)
        return [key.to_dict() for key in self.lender.keys]

    def asleep(self) -> AbstractContextManager[None]:
        return self.lender.process.frozen()

    def ticket(self) -> dict[str, Any]:
        return self.lender.ticket.to_dict()

    def dead(self, key: dict[str, Any]) -> dict[str, Any]:
        return key | {"token": "00" * 16}

    def kill(self) -> None:
        self.process.kill()
        self.process.start()
        self.process.await_ready()

    def down(self) -> None:
        self.process.kill()

    def end_guest(self) -> None:
        self.guest.kill()

    def close(self) -> None:
        self.guest.kill()
        self.lender.close()
        self.process.stop()


@pytest.fixture(params=["stand-in", "real"])
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bed]:
    made: Bed = PlayedBed() if request.param == "stand-in" else RealBed(request.getfixturevalue("programs"), tmp_path)
    yield made
    made.close()


def numbers(view: GuestView) -> dict[int, LeaseState]:
    return {lease.number: lease.state for lease in view.leases if lease.lender == LENDER}


def test_a_guest_is_served(bed: Bed) -> None:
    assert bed.plane.view(GUEST) is None
    assert bed.plane.guests() == []
    found = bed.attach()
    assert (found.guest, found.pid, found.limit_mib) == (GUEST, bed.pid, LIMIT)
    assert found.state is GuestState.SERVING
    assert isinstance(bed, PlayedBed) or found.started == start_of(bed.pid)
    assert bed.attach().started == found.started
    assert [each.guest for each in bed.plane.guests()] == [GUEST]
    assert wait_until(lambda: (bed.seen().evicted_mib or 0) > 0.5 * (MIB - LIMIT), DEADLINE_SECONDS)


def test_a_guest_is_paged_as_wanted(bed: Bed) -> None:
    pager = PagerSettings("s3-fifo", read_ahead_pages=0, chunk_kib=64)
    found = bed.plane.attach(GUEST, bed.pid, bed.memory, bed.mirror, LIMIT, pager)
    assert found.state is GuestState.SERVING
    with pytest.raises(DataPlaneRefused):
        bed.plane.attach(
            "6f1c2d1e-0000-4000-8000-00000000000b", bed.pid, bed.memory, bed.mirror, LIMIT, PagerSettings("lru")
        )


def test_another_process_is_refused(bed: Bed) -> None:
    bed.attach()
    with pytest.raises(DataPlaneRefused, match="is attached already, as process"):
        bed.attach(pid=bed.pid + 1)
    with pytest.raises(DataPlaneRefused, match="is not attached"):
        bed.plane.limit("6f1c2d1e-0000-4000-8000-000000000002", 3)


def test_the_limit_changes(bed: Bed) -> None:
    bed.attach()
    assert bed.plane.limit(GUEST, 3).limit_mib == 3
    bed.attach()
    assert bed.seen().limit_mib == 3


def test_leases_come_and_go(bed: Bed) -> None:
    bed.attach()
    first, second = bed.keys(2)
    bed.plane.lease(GUEST, LENDER, bed.ticket(), [first])
    found = bed.plane.lease(GUEST, LENDER, bed.ticket(), [first, second])
    assert numbers(found) == {first["number"]: LeaseState.ACTIVE, second["number"]: LeaseState.ACTIVE}
    bed.plane.leave(GUEST, LENDER, [first["number"], 4711])
    assert wait_until(lambda: numbers(bed.seen()).keys() == {second["number"]}, DEADLINE_SECONDS)
    bed.plane.lease(GUEST, LENDER, bed.ticket(), [first])
    assert numbers(bed.seen()).keys() == {first["number"], second["number"]}


def test_a_key_that_is_refused_stops_the_rest(bed: Bed) -> None:
    bed.attach()
    first, second, third = bed.keys(3)
    with pytest.raises(Conflict, match="refuses"):
        bed.plane.lease(GUEST, LENDER, bed.ticket(), [first, bed.dead(second), third])
    assert numbers(bed.seen()).keys() == {first["number"]}


def test_a_link_that_is_kept_reaches_a_lender_that_sleeps(bed: Bed) -> None:
    """It is made before, and cannot be made again."""
    keys = bed.keys(2, located=True)
    for _ in range(2):
        bed.plane.connect(LENDER, bed.ticket())
    assert bed.plane.links() == [LENDER]
    bed.attach()
    with bed.asleep():
        bed.plane.connect(LENDER, bed.ticket())
        found = bed.plane.lease(GUEST, LENDER, bed.ticket(), keys)
        assert numbers(found) == {key["number"]: LeaseState.ACTIVE for key in keys}
        bed.kill()
        assert bed.plane.links() == []
        with pytest.raises(DataPlaneRefused):
            bed.plane.lease(GUEST, LENDER, bed.ticket(), keys)
        with pytest.raises(DataPlaneRefused):
            bed.plane.connect(LENDER, bed.ticket())
    bed.plane.lease(GUEST, LENDER, bed.ticket(), keys)
    assert set(numbers(bed.seen()).values()) == {LeaseState.ACTIVE}


def test_a_killed_data_plane_has_its_guests_and_no_lease(bed: Bed) -> None:
    before = bed.attach()
    keys = bed.keys(1)
    bed.plane.lease(GUEST, LENDER, bed.ticket(), keys)
    bed.kill()
    after = bed.seen()
    assert (after.pid, after.started, after.limit_mib, after.state) == (
        before.pid,
        before.started,
        before.limit_mib,
        GuestState.SERVING,
    )
    assert after.leases == ()


def test_nobody_serves(bed: Bed) -> None:
    bed.attach()
    bed.down()
    with pytest.raises(DataPlaneGone):
        bed.seen()


def test_pages_come_home(bed: Bed) -> None:
    bed.attach()
    bed.plane.detach(GUEST)
    assert wait_until(lambda: bed.plane.view(GUEST) is None, DEADLINE_SECONDS)
    assert not Path(bed.mirror).exists()
    assert bed.attach().state is GuestState.SERVING


def test_a_guest_ends(bed: Bed) -> None:
    bed.attach()
    bed.end_guest()
    assert wait_until(lambda: bed.plane.view(GUEST) is None, DEADLINE_SECONDS)
    assert not Path(bed.mirror).exists()
    with pytest.raises(DataPlaneRefused):
        bed.attach()


HOST, KEY, OTHER_KEY, SILENCE_MS = "127.0.0.1", "01" * 32, "02" * 32, 60000


def test_a_guest_is_offered_and_taken_back(bed: Bed) -> None:
    """Also over the death of the data plane."""
    bed.attach()
    port = getattr(bed.plane.hand_over(GUEST, HOST, KEY, SILENCE_MS).handover, "port", 0)
    assert port > 0
    with pytest.raises(DataPlaneRefused, match="is being handed over already"):
        bed.plane.hand_over(GUEST, HOST, OTHER_KEY, SILENCE_MS)
    bed.kill()
    going = bed.plane.hand_over(GUEST, HOST, KEY, SILENCE_MS).handover
    assert going
    assert (going.state, going.port, going.connected, going.is_switched) == ("offered", port, False, False)
    assert going.kept
    bed.plane.withdraw(GUEST)
    assert wait_until(lambda: bed.seen().handover is None, DEADLINE_SECONDS)
    with pytest.raises(DataPlaneRefused, match="was not switched"):
        bed.plane.forget(GUEST)


def test_an_offered_guest_whose_process_ends(bed: Bed) -> None:
    """It is its destination's, and its pages are kept until somebody says that nobody comes for them."""
    bed.attach()
    bed.plane.hand_over(GUEST, HOST, KEY, SILENCE_MS)
    bed.end_guest()
    assert wait_until(lambda: bed.seen().handover is not None and bed.seen().handover.is_switched, DEADLINE_SECONDS)
    with pytest.raises(DataPlaneRefused, match="since the switch"):
        bed.plane.withdraw(GUEST)
    bed.plane.forget(GUEST)
    assert wait_until(lambda: bed.plane.view(GUEST) is None, DEADLINE_SECONDS)
    assert not Path(bed.mirror).exists()
