"""What an attachment refuses, with a reason, and with nothing changed."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..processes import GUEST, DataPlane, RefusedError, StandinGuest

Guests = Callable[..., StandinGuest]

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207  # sys/ptrace.h


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"memory": "ram-node1"}, "no shared writable mapping with ram-node1"),
        ({"memory": ""}, "memory: a part of the path"),
        ({"pid": 1}, "1 is no process of a guest"),
        ({"pid": 2**40}, "pid: 1099511627776 is none"),
        ({"pid": 2**22 + 1}, "cannot be opened: No such process"),
        ({"limit_mib": 0}, "limit_mib: 1 to"),
        ({"limit_mib": 2**24}, "limit_mib: 1 to"),
        ({"limit_mib": "2"}, "Expected integer, got string"),
        ({"policy": "lru"}, "lru is none of fifo, clock, mixed, s3-fifo"),
        ({"parameter": -2}, "parameter: up to"),
        ({"read_ahead_pages": 33}, "read_ahead_pages: 0 to 32"),
        ({"chunk_pages": 0}, "chunk_pages: a power of two from 1 to 16, not 0"),
        ({"chunk_pages": 3}, "chunk_pages: a power of two from 1 to 16, not 3"),
        ({"chunk_pages": 32}, "chunk_pages: a power of two from 1 to 16, not 32"),
        ({"mirror": "mirror"}, "mirror: an absolute path"),
        ({"mirror": "/nowhere/mirror"}, "/nowhere/mirror cannot be opened"),
        ({"mirror": "/" + "x" * 600}, "a name is too long"),
        ({"guest": "../../etc/passwd"}, "is no UUID"),
        ({"guest": ""}, "is no UUID"),
        ({"colour": "red"}, "colour"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_attachment(
    settings: dict[str, Any], reason: str, plane: DataPlane, guest: Guests, tmp_path: Path
) -> None:
    served = guest(4)
    with pytest.raises(RefusedError) as caught:
        plane.attach(served, tmp_path / "mirror", 2, **settings)
    assert reason in str(caught.value)
    assert plane.ask(verb="view")["guests"] == []
    assert not list((plane.folder / "guests").iterdir())
    assert not (tmp_path / "mirror").exists()
    plane.attach(served, tmp_path / "mirror", 2)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_guest_that_a_debugger_has(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    """As where a profile or Yama denies it: the error says what may, and where to look."""
    served, libc = guest(4), ctypes.CDLL(None, use_errno=True)
    assert libc.ptrace(PTRACE_SEIZE, served.pid, None, None) == 0
    with pytest.raises(RefusedError) as caught:
        plane.attach(served, tmp_path / "mirror", 2)
    assert "takes no system call from outside (ptrace: Operation not permitted); CAP_SYS_PTRACE" in str(caught.value)
    assert "kernel.yama.ptrace_scope, AppArmor or SELinux denies it: see journalctl -k" in str(caught.value)
    assert libc.ptrace(PTRACE_INTERRUPT, served.pid, None, None) == 0
    os.waitpid(served.pid, os.WUNTRACED)
    assert libc.ptrace(PTRACE_DETACH, served.pid, None, None) == 0
    plane.attach(served, tmp_path / "mirror", 2)
    plane.detach()
    assert served.finish()["wrong"] == 0


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_a_mirror_that_is_somebodys_file(mode: int, plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served, somebodys = guest(4), tmp_path / "mirror"
    somebodys.write_text("somebody's")
    somebodys.chmod(mode)
    with pytest.raises(RefusedError, match="File exists"):
        plane.attach(served, somebodys, 2)
    assert somebodys.read_text() == "somebody's"
    somebodys.unlink()
    plane.attach(served, somebodys, 2)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_attached_twice(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    served, other = guest(4), guest(4)
    plane.attach(served, tmp_path / "mirror", 2)
    assert plane.attach(served, tmp_path / "mirror", 2)["state"] == "serving"
    with pytest.raises(RefusedError, match="is attached already, as process"):
        plane.attach(other, tmp_path / "another", 2)
    with pytest.raises(RefusedError, match="another process uses the mirror"):
        plane.attach(other, tmp_path / "mirror", 2, guest=GUEST[:-1] + "f")
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_a_lost_mirror_is_no_empty_one(plane: DataPlane, guest: Guests, tmp_path: Path) -> None:
    """The guest waits until its mirror is there again, and the next process tries again and again."""
    mirror = tmp_path / "mirror"
    served = guest(4)
    plane.attach(served, mirror, 2, sealed=False)
    plane.kill()
    os.rename(mirror, tmp_path / "elsewhere")
    plane.start()
    plane.await_ready()
    view = plane.view()
    assert (view["state"], "cannot be opened" in view["problem"]) == ("failed", True)
    os.rename(tmp_path / "elsewhere", mirror)
    plane.detach()
    assert served.finish()["wrong"] == 0


def test_memory_with_huge_pages(
    plane: DataPlane, guest: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel gives them to who asks, as QEMU does."""
    monkeypatch.setenv("STANDIN_HUGE", "1")
    served = guest(8)
    smaps = Path(f"/proc/{served.pid}/smaps").read_text()
    if any(line.split()[1] != "0" for line in smaps.splitlines() if line.startswith("ShmemPmdMapped:")):
        with pytest.raises(RefusedError, match="are huge pages"):
            plane.attach(served, tmp_path / "mirror", 2)
    else:
        plane.attach(served, tmp_path / "mirror", 2)
        flags = Path(f"/proc/{served.pid}/smaps").read_text()
        assert " nh" in flags  # none will be made
        assert " dc" in flags  # and no child gets the mapping
        plane.detach()
    assert served.finish()["wrong"] == 0
