"""What the agent builds on of a data plane for block devices: the same tests for the real one and for the stand-in."""

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pondstack_agent.data_plane.blocks import BlockDevices
from pondstack_agent.data_plane.client import ControlClient
from pondstack_agent.data_plane.errors import DataPlaneGone, DataPlaneRefused
from pondstack_agent.data_plane.views import BlockState, BlockView
from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.exported.client import connect
from rdma.tests.data_plane.lenders import LEASE_BYTES, Lender
from rdma.tests.data_plane.processes import BLOCK, DEADLINE_SECONDS, BlockPlane

from .standin import StandinDataPlane

MIB = 2
LENDER = "lender1@a"


class Bed(ABC):
    """A data plane, and a lender."""

    blocks: BlockDevices
    folder: Path

    def export(self, mib: int = MIB) -> BlockView:
        socket = str(self.folder / f"{BLOCK}.sock")
        return self.blocks.export(BLOCK, mib, str(self.folder / "mirror"), socket, os.getuid())

    def seen(self) -> BlockView:
        found = self.blocks.view(BLOCK)
        assert found
        return found

    @abstractmethod
    def lend(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Have a ticket and two keys of the lender."""

    @abstractmethod
    def open(self) -> None:
        """Connect to the device."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the data plane with -9, and start it again."""

    @abstractmethod
    def down(self) -> None:
        """Kill it, and start none."""

    @abstractmethod
    def close(self) -> None:
        """Leave nothing behind."""


class PlayedBed(Bed):
    """Over the stand-in."""

    def __init__(self) -> None:
        self.plane, self.folder = StandinDataPlane(), Path("/plane")
        self.blocks = self.plane.blocks

    def lend(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return {"driver": "shm"}, [{"number": 1}, {"number": 2}]

    def open(self) -> None:
        self.plane.blocks.open(BLOCK, 1)

    def kill(self) -> None:
        self.plane.kill()

    def down(self) -> None:
        self.plane.gone = True

    def close(self) -> None:
        pass


class RealBed(Bed):
    """Over the program."""

    def __init__(self, program: Path) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="blocks-")  # short: of a socket's path 107 bytes count
        self.folder = Path(self._made.name)
        self.process = BlockPlane(program, self.folder / "plane")
        self.process.start()
        self.process.await_ready()
        self.blocks = ControlClient(self.folder / "plane", DEADLINE_SECONDS).blocks
        self.lender = Lender(self.folder, "lender1")
        self.link: Any = None

    def lend(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        made = [self.lender.process.lend("host1", LEASE_BYTES) for _ in range(2)]
        return made[-1][0].to_dict(), [key.to_dict() for _, key in made]

    def open(self) -> None:
        self.link = connect(self.folder / f"{BLOCK}.sock")

    def kill(self) -> None:
        self.process.restart()

    def down(self) -> None:
        self.process.kill()

    def close(self) -> None:
        if self.link:
            self.link.__exit__()
        self.lender.close()
        self.process.close()
        self._made.cleanup()


@pytest.fixture(params=["stand-in", "real"])
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    made: Bed = PlayedBed() if request.param == "stand-in" else RealBed(request.getfixturevalue("programs")[0])
    yield made
    made.close()


def used(bed: Bed) -> set[int]:
    return {lease.number for lease in bed.seen().leases if lease.lender == LENDER}


def test_a_device_comes_and_goes(bed: Bed) -> None:
    """Both may be told twice."""
    assert bed.blocks.view(BLOCK) is None
    found = bed.export()
    assert (found.block, found.mib, found.state, found.connected) == (BLOCK, MIB, BlockState.SERVING, 0)
    assert bed.export().state is BlockState.SERVING
    with pytest.raises(DataPlaneRefused, match="exported already"):
        bed.export(MIB + 1)
    bed.open()
    assert wait_until(lambda: bed.seen().connected == 1, DEADLINE_SECONDS)
    bed.blocks.unexport(BLOCK)
    bed.blocks.unexport(BLOCK)
    assert bed.blocks.view(BLOCK) is None


def test_leases_outlive_no_data_plane(bed: Bed) -> None:
    bed.export()
    ticket, keys = bed.lend()
    first, second = (key["number"] for key in keys)
    bed.blocks.lease(BLOCK, LENDER, ticket, keys[:1])
    bed.blocks.lease(BLOCK, LENDER, ticket, keys)
    assert used(bed) == {first, second}
    bed.blocks.leave(BLOCK, LENDER, [first, 4711])
    assert wait_until(lambda: used(bed) == {second}, DEADLINE_SECONDS)
    bed.kill()
    assert (used(bed), bed.seen().state, bed.seen().mib) == (set(), BlockState.SERVING, MIB)
    with pytest.raises(DataPlaneRefused, match="is not exported"):
        bed.blocks.lease("6f1c", LENDER, ticket, keys)
    bed.down()
    with pytest.raises(DataPlaneGone):
        bed.seen()
