"""A short run of `make torture-pager`, and a death at each point of the code."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until
from tests.fixtures.seeds import by_night, seed

from ..processes import DEADLINE_SECONDS, GUEST, DataPlane, RefusedError, StandinGuest
from ..torture import POINTS, Options, report, run

ATTACH_POINTS = ("state", "userfault", "attached", "registered")


def test_no_word_is_wrong(programs: tuple[Path, Path], tmp_path: Path) -> None:
    options = Options(by_night(5, 1) * 0.1, seed(20181))
    result = run(options, tmp_path, programs)
    print(report(options, result))
    assert result.holds, report(options, result)
    assert result.kills


@pytest.mark.parametrize("point", POINTS)
def test_a_death_while_it_serves(
    point: str, plane: DataPlane, guest: Callable[..., StandinGuest], tmp_path: Path
) -> None:
    served = guest(8)
    plane.attach(served, tmp_path / "mirror", 2)
    for count in (1, 40):
        plane.kill()
        plane.start(PONDSTACK_CRASH_AT=f"{point}:{count}")
        assert plane.await_end() == -signal.SIGKILL
    plane.start()
    plane.await_ready()
    plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("point", ATTACH_POINTS)
def test_a_death_while_it_attaches(
    point: str, plane: DataPlane, guest: Callable[..., StandinGuest], tmp_path: Path
) -> None:
    """The next process goes on with it, or begins anew."""
    served = guest(8)
    plane.kill()
    plane.start(PONDSTACK_CRASH_AT=f"{point}:1")
    plane.await_ready()
    with pytest.raises(RefusedError):
        plane.attach(served, tmp_path / "mirror", 2)
    assert plane.await_end() == -signal.SIGKILL
    plane.start()
    plane.await_ready()
    plane.attach(served, tmp_path / "mirror", 2)
    assert wait_until(lambda: plane.view()["counters"]["loads"] > 100, DEADLINE_SECONDS)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_death_once_all_is_home(plane: DataPlane, guest: Callable[..., StandinGuest], tmp_path: Path) -> None:
    """The next process finishes the detachment."""
    served = guest(8)
    plane.attach(served, tmp_path / "mirror", 2)
    plane.kill()
    plane.start(PONDSTACK_CRASH_AT="home:1")
    plane.await_ready()
    plane.ask(verb="detach", guest=GUEST)
    assert plane.await_end() == -signal.SIGKILL
    plane.start()
    plane.await_ready()
    assert wait_until(lambda: not plane.ask(verb="view")["guests"], DEADLINE_SECONDS)
    assert not (tmp_path / "mirror").exists()
    assert served.finish()["wrong"] == 0
