"""Exports come, change their size, outlive the data plane, and go without a trace."""

import os
import pwd
import re
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pondstack_rack.wait import wait_until
from pondstack_rdma.data_plane import PROGRAM

from ..processes import BLOCK, DEADLINE_SECONDS, BlockPlane, RefusedError
from .client import ENOSPC, TRIM, NbdError, connect

MIB, PAGE = 2**20, 4096


def nobody() -> int:
    """Return a user who is not root."""
    return pwd.getpwnam("nobody").pw_uid


def test_it_comes_and_goes(plane: BlockPlane) -> None:
    made = plane.export(3)
    assert (made["state"], made["mib"], made["most_mib"], made["sealed"]) == ("serving", 3, 3, True)
    assert plane.export(3)["keeper"] == made["keeper"]
    assert plane.ask(verb="view")["blocks"][0]["block"] == BLOCK
    with connect(plane.socket) as link:
        link.write(0, b"x" * PAGE)
        assert wait_until(lambda: plane.device()["connected"] == 1, DEADLINE_SECONDS)
        plane.ask(verb="unexport", block=BLOCK)
        assert link.hung_up
    assert plane.ask(verb="view")["blocks"] == []
    assert plane.keepers() == []
    assert sorted(os.listdir(plane.folder.parent)) == ["data-plane.log", "plane"]
    plane.export(3)
    with connect(plane.socket) as link:
        assert link.read(0, PAGE) == bytes(PAGE)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"block": "../x"}, "block: ../x is no UUID"),
        ({"block": ""}, "is no UUID"),
        ({"mib": 0}, "mib: 1 to most_mib"),
        ({"mib": 2, "most_mib": 1}, "mib: 1 to most_mib"),
        ({"most_mib": 2**23 + 1}, "up to 8388608"),
        ({"mirror": "mirror"}, "absolute paths"),
        ({"socket": "/" + "x" * 107}, "up to 107 bytes"),
        ({"mirror": "/" + "x" * 600}, "too long"),
        ({"mirror": "/nowhere/mirror"}, "the mirror /nowhere/mirror cannot be opened"),
        ({"socket": "/nowhere/nbd.sock"}, "/nowhere/nbd.sock cannot be listened on"),
        ({"user": -1}, "the number of a user"),
        ({"user": "qemu"}, "Expected integer"),
        ({"colour": 1}, "colour"),
    ],
)
def test_what_is_no_export(plane: BlockPlane, wrong: dict[str, Any], reason: str) -> None:
    """It leaves nothing behind."""
    with pytest.raises(RefusedError, match=reason):
        plane.export(1, **wrong)
    assert plane.ask(verb="view")["blocks"] == []
    assert plane.keepers() == []
    assert sorted(os.listdir(plane.folder.parent)) == ["data-plane.log", "plane"]
    assert os.listdir(plane.folder / "blocks") == []


def test_two_of_one_name_or_place(plane: BlockPlane, tmp_path: Path) -> None:
    plane.export(1)
    with pytest.raises(RefusedError, match="exported already"):
        plane.export(1, mirror=str(tmp_path / "other"))
    with pytest.raises(RefusedError, match="another block has the mirror"):
        plane.export(1, block="6f1c", socket=str(tmp_path / "other.sock"))
    with pytest.raises(RefusedError, match="another block has the mirror"):
        plane.export(1, block="6f1c", mirror=str(tmp_path / "other"))
    plane.ask(verb="unexport", block=BLOCK)
    plane.socket.write_text("somebody's file")
    with pytest.raises(RefusedError, match="is there already, and is no socket"):
        plane.export(1)
    assert plane.socket.read_text() == "somebody's file"
    plane.mirror.write_text("somebody's file")
    with pytest.raises(RefusedError, match="cannot be opened"):
        plane.export(1)
    assert plane.mirror.read_text() == "somebody's file"


@pytest.mark.parametrize("verb", ["view", "unexport", "resize", "lease", "leave"])
def test_an_unknown_block(plane: BlockPlane, verb: str) -> None:
    more: dict[str, dict[str, Any]] = {
        "resize": {"mib": 1},
        "lease": {"lender": "x", "ticket": {}, "keys": []},
        "leave": {"lender": "x", "numbers": []},
    }
    with pytest.raises(RefusedError, match="block 6f1c is not exported"):
        plane.ask(verb=verb, block="6f1c", **more.get(verb, {}))


def test_only_its_user_may_open_it(plane: BlockPlane, tmp_path: Path) -> None:
    """Besides root: by the socket's mode, and by who connects."""
    plane.export(1, user=nobody())
    found = plane.socket.stat()
    assert (found.st_mode & 0o777, found.st_uid) == (0o600, nobody())
    for folder in tmp_path.parents[: len(tmp_path.parents) - 2]:
        folder.chmod(folder.stat().st_mode | 0o011)
    tmp_path.chmod(0o711)
    plane.socket.chmod(0o666)
    script = f"import socket; s = socket.socket(1); s.connect({str(plane.socket)!r}); print(len(s.recv(18)))"
    for user, got in ((nobody(), "18\n"), (nobody() - 1, "0\n")):
        done = subprocess.run(
            ["/usr/bin/python3", "-c", script], user=user, capture_output=True, text=True, check=False
        )
        assert done.stdout == got, done.stderr


def test_it_grows_and_shrinks(plane: BlockPlane) -> None:
    """Whoever connects anew sees the size; whoever was connected goes on."""
    plane.export(2, most_mib=4)
    with connect(plane.socket) as link:
        link.write(MIB, b"1" * PAGE)
        assert plane.ask(verb="resize", block=BLOCK, mib=4)["mib"] == 4
        link.write(3 * MIB, b"2" * PAGE)
        plane.restart()
    with connect(plane.socket) as link:
        assert link.size == 4 * MIB
        assert link.read(MIB, PAGE) + link.read(3 * MIB, PAGE) == b"1" * PAGE + b"2" * PAGE
        with pytest.raises(RefusedError, match="pages behind that are in use"):
            plane.ask(verb="resize", block=BLOCK, mib=3)
        link.change(TRIM, 3 * MIB, PAGE)
        plane.ask(verb="resize", block=BLOCK, mib=2)
        with pytest.raises(NbdError) as found:
            link.write(3 * MIB, b"x")
        assert found.value.number == ENOSPC
        assert link.read(MIB, PAGE) == b"1" * PAGE
    assert plane.mirror.stat().st_size == 2 * MIB
    for mib in (0, 5):
        with pytest.raises(RefusedError, match="mib: 1 to 4"):
            plane.ask(verb="resize", block=BLOCK, mib=mib)


def test_a_keeper_that_is_killed_is_replaced(plane: BlockPlane) -> None:
    first = plane.export(1)["keeper"]
    with connect(plane.socket) as link:
        link.write(0, b"x" * PAGE)
        os.kill(first, signal.SIGKILL)
        assert wait_until(lambda: plane.device()["keeper"] != first, DEADLINE_SECONDS)
        plane.restart()
    with connect(plane.socket) as link:
        assert link.read(0, PAGE) == b"x" * PAGE


def test_a_keeper_survives_what_ends_a_service(plane: BlockPlane) -> None:
    keeper = plane.export(1)["keeper"]
    with connect(plane.socket) as link:
        link.write(0, b"x" * PAGE)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(keeper, number)
    plane.stop()
    plane.start()
    plane.await_ready()
    assert plane.device()["keeper"] == keeper
    with connect(plane.socket) as link:
        assert link.read(0, PAGE) == b"x" * PAGE


def kill(pid: int) -> None:
    """Kill a process that is no child of this one, and wait for its end."""
    watched = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(watched, signal.SIGKILL)
        assert select.select([watched], [], [], DEADLINE_SECONDS)[0], pid
    finally:
        os.close(watched)


def test_without_its_keeper_nothing_is_made_up(plane: BlockPlane) -> None:
    """Both were killed: the key is gone. The device is not served as an empty one."""
    keeper = plane.export(1)["keeper"]
    with connect(plane.socket) as link:
        link.write(0, b"x" * PAGE)
    plane.kill()
    kill(keeper)
    plane.start()
    plane.await_ready()
    found = plane.device()
    assert (found["state"], "has ended, and its pages with it" in found["problem"]) == ("failed", True)
    with pytest.raises(RefusedError, match="not served"):
        plane.export(1)
    plane.ask(verb="unexport", block=BLOCK)
    assert not plane.mirror.exists()
    assert plane.export(1)["state"] == "serving"


@pytest.mark.parametrize("how", ["shorter", "gone"])
def test_without_its_mirror_nothing_is_made_up(plane: BlockPlane, how: str) -> None:
    plane.export(1)
    plane.kill()
    if how == "gone":
        plane.mirror.unlink()
    else:
        os.truncate(plane.mirror, MIB // 2)
    plane.start()
    plane.await_ready()
    assert plane.device()["state"] == "failed"


def test_the_key_is_gone_with_the_export(plane: BlockPlane) -> None:
    """Whoever still has the memfd finds zeros for it, and nothing in the mirror that they kept open."""
    keeper = plane.export(1)["keeper"]
    with connect(plane.socket) as link:
        link.write(0, os.urandom(MIB // 4))
    key = slice(24, 56)
    with open(f"/proc/{keeper}/fd/3", "rb", buffering=0) as table, plane.mirror.open("rb", buffering=0) as mirror:
        assert any(table.read(64)[key])
        assert any(mirror.read())
        plane.ask(verb="unexport", block=BLOCK)
        table.seek(0)
        mirror.seek(0)
        assert not any(table.read(64)[key])
        assert not any(mirror.read())


def is_locked_and_in_no_dump(pid: int) -> bool:
    """Whether a mapping of a process is."""
    flags = re.findall(r"VmFlags: (.*)", Path(f"/proc/{pid}/smaps").read_text())
    return any({"dd", "lo"} <= set(each.split()) for each in flags)


def test_its_memory_is_locked_and_its_key_in_no_dump(tmp_path: Path) -> None:
    """Of the program as it is installed: sanitizers lock nothing."""
    plane = BlockPlane(PROGRAM, tmp_path / "plane")
    try:
        plane.start()
        plane.await_ready()
        keeper = plane.export(1)["keeper"]
        assert plane.process
        for pid in (keeper, plane.process.pid):
            # The keeper has begun when the export is answered, and is about to lock what the data plane has locked.
            assert wait_until(partial(is_locked_and_in_no_dump, pid), DEADLINE_SECONDS), pid
    finally:
        plane.close()


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder where the path of a socket with a long name fits."""
    with tempfile.TemporaryDirectory(prefix="block-", dir="/tmp") as made:
        yield Path(made)


def test_what_a_client_that_is_not_root_may_export(program: Path, short_path: Path) -> None:
    """Mirrors are in one folder, and sockets in the data plane's own, by the name of the device."""
    mirrors, folder = short_path / "mirrors", short_path / "plane"
    mirrors.mkdir()
    plane = BlockPlane(program, folder, "nobody", str(mirrors))
    plane.start()
    plane.await_ready()
    mirror, path = str(mirrors / "disk"), str(folder / f"{BLOCK}.sock")
    for wrong in (
        {"mirror": str(mirrors / "../disk"), "socket": path},
        {"mirror": "/etc/disk", "socket": path},
        {"mirror": mirror, "socket": str(folder / "control.sock")},
        {"mirror": mirror, "socket": str(short_path / "nbd.sock")},
    ):
        with pytest.raises(RefusedError, match="are made here"):
            plane.export(1, **wrong)
    assert plane.export(1, mirror=mirror, socket=path)["state"] == "serving"
    plane.ask(verb="unexport", block=BLOCK)
    plane.close()
