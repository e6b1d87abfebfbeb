"""A user besides root whom the data plane serves: the host's agent, which may do less than root."""

import json
import os
import pwd
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..processes import DEADLINE_SECONDS, GUEST, MEMORY, DataPlane, RefusedError, StandinGuest

USER, OTHER = "nobody", "daemon"


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    made = tmp_path / "mirrors"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def served(programs: tuple[Path, Path], mirrors: Path, tmp_path: Path) -> Iterator[DataPlane]:
    """A data plane with a client."""
    made = DataPlane(programs[0], tmp_path / "plane", USER, str(mirrors))
    made.start()
    made.await_ready()
    yield made
    made.stop()


def ask_as(user: str, plane: DataPlane, **request: object) -> dict[str, object]:
    """Send a request as another user; raises OSError, RefusedError."""
    code = (
        "import os, socket, sys\n"
        "link = socket.socket(socket.AF_UNIX)\n"
        "link.settimeout(60)\n"
        "link.connect(sys.argv[1])\n"
        "link.sendall(sys.argv[2].encode() + b'\\n')\n"
        "print(link.makefile().readline())\n"
    )
    command = ["python3", "-I", "-c", code, str(plane.folder / "control.sock"), json.dumps(request)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, user=user, group="nogroup", timeout=DEADLINE_SECONDS
    )
    if done.returncode != 0 or not done.stdout.strip():
        raise PermissionError(done.stderr)
    answer: dict[str, dict[str, object]] = json.loads(done.stdout)
    if "result" not in answer:
        raise RefusedError(str(answer))
    return answer["result"]


def open_up(path: Path) -> None:
    """Let other users pass the folders of the tests, as those of an installation."""
    for folder in path.parents:
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o011)


def test_nobody_else_gets_in(served: DataPlane) -> None:
    open_up(served.folder / "control.sock")
    assert ask_as(USER, served, verb="view") == {"guests": [], "blocks": [], "links": []}
    with pytest.raises(PermissionError):
        ask_as(OTHER, served, verb="view")
    found = (served.folder / "control.sock").stat()
    assert (found.st_uid, found.st_mode & 0o777) == (pwd.getpwnam(USER).pw_uid, 0o600)
    assert (served.folder / "guests").stat().st_mode & 0o777 == 0o700
    # Nor by way of somebody who opens it to others.
    (served.folder / "control.sock").chmod(0o666)
    with pytest.raises(PermissionError):
        ask_as(OTHER, served, verb="view")
    assert ask_as(USER, served, verb="view") == {"guests": [], "blocks": [], "links": []}


def test_a_client_attaches_guests_only(
    served: DataPlane, programs: tuple[Path, Path], mirrors: Path, tmp_path: Path
) -> None:
    """By its own word no process is one, and no file of the host becomes a mirror."""
    open_up(served.folder / "control.sock")
    guest = StandinGuest(programs[1], 8, more=("-uuid", GUEST))
    other = StandinGuest(programs[1], 8)
    try:
        wanted = {"verb": "attach", "guest": GUEST, "memory": MEMORY, "limit_mib": 2}
        for mirror in (tmp_path / "mirror", mirrors / ".." / "mirror", mirrors / ".hidden", mirrors / "a" / "b"):
            with pytest.raises(RefusedError, match="is no file of"):
                ask_as(USER, served, pid=guest.pid, mirror=str(mirror), **wanted)
        with pytest.raises(RefusedError, match="was not started with -uuid"):
            ask_as(USER, served, pid=other.pid, mirror=str(mirrors / GUEST), **wanted)
        assert not list(mirrors.iterdir())
        ask_as(USER, served, pid=guest.pid, mirror=str(mirrors / GUEST), **wanted)
        served.detach()
        assert guest.finish()["wrong"] == 0
    finally:
        guest.kill()
        other.kill()


@pytest.mark.parametrize("words", [("no-such-user", "/mirrors"), (USER, "mirrors")], ids=["user", "mirrors"])
def test_a_client_that_is_none(words: tuple[str, str], programs: tuple[Path, Path], tmp_path: Path) -> None:
    command: list[str | Path] = [programs[0], "serve", tmp_path / "plane", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS)
    assert done.returncode == 1
    assert "is no user of this host, or" in done.stderr


def test_what_its_unit_lets_it_have_is_enough(
    programs: tuple[Path, Path], guest: Callable[..., StandinGuest], tmp_path: Path
) -> None:
    """The capabilities of the unit, and little memory that may be locked."""
    unit = (Path(__file__).resolve().parents[4] / "etc/deploy/pondstack-data-plane.service").read_text()
    given = next(line for line in unit.splitlines() if line.startswith("CapabilityBoundingSet=")).partition("=")[2]
    bounds = ",".join(["-all", *(f"+{name.removeprefix('CAP_').lower()}" for name in given.split())])
    program = tmp_path / "limited"
    program.write_text(
        f'#!/bin/sh\nulimit -l 64\nexec setpriv --bounding-set={bounds} --inh-caps=-all {programs[0]} "$@"\n'
    )
    program.chmod(0o755)
    plane, served = DataPlane(program, tmp_path / "plane"), guest(8)
    plane.start()
    plane.await_ready()
    plane.attach(served, tmp_path / "mirror", 2)
    plane.kill()
    plane.start()
    plane.await_ready()
    plane.detach()
    assert served.finish()["wrong"] == 0
    plane.stop()
