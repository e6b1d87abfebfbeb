"""Only the guests of this host's own libvirt count, though others of the machine are seen."""

import os
import subprocess
from pathlib import Path

from pondstack_agent.telemetry.libvirt_guests import libvirt_guests
from pondstack_agent.telemetry.memory import running_guests

from .conftest import UUID, GuestMaker

DOMAIN = "instance-00000001"


def test_a_guest_with_a_pid_file(start_guest: GuestMaker, tmp_path: Path) -> None:
    mine = start_guest(uuid=UUID, more=("-name", f"guest={DOMAIN},debug-threads=on"))
    (tmp_path / f"{DOMAIN}.pid").write_text(f"{mine.pid}\n")
    assert libvirt_guests(tmp_path)() == {UUID: mine.pid}
    other = start_guest(uuid=UUID, more=("-name", f"guest={DOMAIN},debug-threads=on"))
    assert libvirt_guests(tmp_path)() == {UUID: mine.pid}, "another host's, where it moves to"
    assert libvirt_guests(tmp_path / "other")() == {}
    mine.kill()
    assert libvirt_guests(tmp_path)() == {}
    assert running_guests()[UUID] == other.pid


def test_files_that_name_no_guest(start_guest: GuestMaker, tmp_path: Path) -> None:
    other = start_guest(uuid=UUID, more=("-name", f"guest={DOMAIN},debug-threads=on"))
    nameless = start_guest(more=("-name", "guest=nameless"))
    stranger = subprocess.Popen(["sleep", "600"])
    for name, text in {
        "left-behind": str(other.pid),  # its process id is another guest's by now
        "nameless": str(nameless.pid),
        "stranger": str(stranger.pid),
        "broken": "x",
        "gone": "4194304",
        "": str(os.getpid()),
    }.items():
        (tmp_path / f"{name}.pid").write_text(text)
    try:
        assert libvirt_guests(tmp_path)() == {}
    finally:
        stranger.kill()
        stranger.wait(10)
