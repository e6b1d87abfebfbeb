"""The data plane's threads, under the thread sanitizer: all that one may do while the other one serves."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until

from .. import builds
from ..exported.client import connect
from ..lenders import Lender
from ..processes import BLOCK, DEADLINE_SECONDS, GUEST, BlockPlane, DataPlane, StandinGuest


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builds.racing(tmp_path_factory)


@pytest.mark.parametrize("driver", ["shm", "tcp"])
def test_no_race(driver: str, program: Path, guest: Callable[..., StandinGuest], tmp_path: Path) -> None:
    plane = DataPlane(program, tmp_path / "plane")
    plane.start()
    plane.await_ready()
    served, lender = guest(8), Lender(tmp_path, "lender1", driver)
    plane.attach(served, tmp_path / "mirror", 4)
    lender.lend(plane, 2)
    for turn in range(6):
        before = plane.view()["counters"]["loads"]
        plane.ask(verb="limit", guest=GUEST, limit_mib=1 + turn % 3)
        assert wait_until(lambda before=before: plane.view()["counters"]["loads"] > before + 200, DEADLINE_SECONDS)
        plane.ask(verb="leave", guest=GUEST, lender="lender1", numbers=[lender.keys.pop(0).number])
        lender.lend(plane)
    lender.process.kill()
    assert wait_until(lambda: plane.view()["leases"][0]["state"] == "lost", DEADLINE_SECONDS)
    plane.detach()
    lender.close()
    assert served.finish()["wrong"] == 0
    plane.stop()  # fails where the sanitizer said anything


def test_no_race_over_one_link(program: Path, guest: Callable[..., StandinGuest], tmp_path: Path) -> None:
    """A guest and a block device share it, and the lender is killed meanwhile."""
    plane = BlockPlane(program, tmp_path / "plane")
    plane.start()
    plane.await_ready()
    served, lender = guest(8), Lender(tmp_path, "lender1", "tcp")
    lender.make(2, located=True)
    lender.connect(plane)
    plane.attach(served, tmp_path / "guest-mirror", 2)
    plane.export(2)
    lender.disclose(plane, 0)
    lender.disclose(plane, 1, block=BLOCK)
    with connect(plane.socket) as link:
        for turn in range(16):
            if turn == 12:
                lender.process.kill()
            data = bytes([turn]) * 256 * 1024
            link.write(0, data)
            assert link.read(0, len(data)) == data
    assert wait_until(lambda: plane.view()["leases"][0]["state"] == "lost", DEADLINE_SECONDS)
    assert plane.view()["store"]["lender_writes"] > 0
    plane.detach()
    lender.close()
    assert served.finish()["wrong"] == 0
    plane.close()  # fails where the sanitizer said anything
