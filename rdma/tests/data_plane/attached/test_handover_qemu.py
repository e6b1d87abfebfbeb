"""A live migration between two stock QEMUs (TCG): the guest verifies its memory, of which QEMU's stream has nothing."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pondstack_rack.wait import wait_until

from ..handover import Handover
from ..processes import DEADLINE_SECONDS, EMULATED_REST_US, GUEST, DataPlane
from ..qemu_guest import MEMORY, QemuGuest, initramfs

RAM_MIB, WORDS_MIB = 160, 48
OUTSIDE_BYTES = 8 << 20
"""What QEMU's stream has at most: devices, and blocks that are not the guest's node (ROMs, tables)."""


class Monitor:
    """Of a QEMU: its QMP."""

    def __init__(self, path: Path) -> None:
        assert wait_until(path.exists, DEADLINE_SECONDS, 0.01)
        self._link = socket.socket(socket.AF_UNIX)
        self._link.settimeout(DEADLINE_SECONDS)
        self._link.connect(str(path))
        self._lines = self._link.makefile()
        self._lines.readline()  # its greeting
        self.ask("qmp_capabilities")

    def ask(self, command: str, /, **arguments: Any) -> Any:
        """Have it carry out a command; the answer, behind events."""
        self._link.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = json.loads(self._lines.readline())
            assert "error" not in answer, answer
            if "return" in answer:
                return answer["return"]

    def close(self) -> None:
        """Hang up."""
        self._lines.close()
        self._link.close()


@pytest.fixture
def qemus(tmp_path: Path) -> Iterator[tuple[QemuGuest, QemuGuest]]:
    """The source, and a destination that waits for it."""
    image = initramfs(tmp_path)

    def start(name: str, *more: str) -> QemuGuest:
        monitor = f"unix:{tmp_path / name}.qmp,server=on,wait=off"
        words = ("-qmp", monitor, *more)
        return QemuGuest(image, WORDS_MIB, RAM_MIB, opened=True, more=words, rest_us=EMULATED_REST_US)

    made = start("source"), start("destination", "-S", "-incoming", "defer")
    yield made
    for each in made:
        each.kill()


def test_a_guest_moves(
    plane: DataPlane, programs: tuple[Path, Path], qemus: tuple[QemuGuest, QemuGuest], tmp_path: Path
) -> None:
    """While it works. As with libvirt, the destination runs it, and its former process ends, without any order."""
    source, destination = qemus
    (tmp_path / "other").mkdir()
    other = DataPlane(programs[0], tmp_path / "other" / "plane")
    plane.stop()
    for served in (plane, other):
        served.large_files = True
        served.start()
        served.await_ready()
    source.await_memory()
    plane.attach(source, tmp_path / "mirror", RAM_MIB // 2, memory=MEMORY)
    source.await_ready()
    source.begin()
    plane.ask(verb="limit", guest=GUEST, limit_mib=RAM_MIB // 4)
    assert wait_until(lambda: plane.view()["counters"]["loads"] > 500, DEADLINE_SECONDS)

    handover = Handover(plane, other)
    destination.await_memory()
    handover.attach(destination, tmp_path / "mirror-2", RAM_MIB // 4, handover.offer(), memory=MEMORY)
    handover.await_destination("waiting")
    there, here = Monitor(tmp_path / "destination.qmp"), Monitor(tmp_path / "source.qmp")
    for each in (there, here):  # QEMU 10 has no -global for it
        each.ask("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])
    there.ask("migrate-incoming", uri=f"unix:{tmp_path / 'stream'}")
    here.ask("migrate", uri=f"unix:{tmp_path / 'stream'}")
    assert wait_until(lambda: here.ask("query-migrate")["status"] == "completed", DEADLINE_SECONDS, 0.02)
    counted = here.ask("query-migrate")["ram"]
    assert counted["transferred"] < OUTSIDE_BYTES, counted
    there.ask("cont")
    here.close()
    source.kill()
    handover.await_source("switched")
    loads = other.view()["counters"]["loads"]
    assert wait_until(lambda: other.view()["counters"]["loads"] > loads + 500, DEADLINE_SECONDS)
    handover.await_all()
    destination.stop()
    counts = destination.finish()
    there.close()
    assert counts["wrong"] == 0
    assert counts["accesses"] > 1000
    assert wait_until(lambda: not other.ask(verb="view")["guests"], DEADLINE_SECONDS)
    other.stop()
