"""A stock QEMU under the pager: its guest boots on, verifies its own memory, and finds no wrong word."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_rack.wait import Deadline, wait_until

from ..processes import DEADLINE_SECONDS, GUEST, DataPlane
from ..qemu_guest import MEMORY, QemuGuest, initramfs

RAM_MIB, WORDS_MIB = 160, 64
SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
"""As libvirt starts it: its seccomp filter binds what is carried out in its process from outside, too."""


@pytest.fixture
def qemu(tmp_path: Path) -> Iterator[QemuGuest]:
    made = QemuGuest(initramfs(tmp_path), WORDS_MIB, RAM_MIB, more=SANDBOX)
    yield made
    made.kill()


def test_no_word_is_wrong_in_a_guest(plane: DataPlane, qemu: QemuGuest, tmp_path: Path) -> None:
    """Attached while it boots; killed while it works; let go of before it verifies all."""

    plane.stop()
    plane.large_files = True
    plane.start()
    plane.await_ready()
    qemu.await_memory()
    assert qemu.filtered()
    plane.attach(qemu, tmp_path / "mirror", RAM_MIB // 2, memory=MEMORY)
    qemu.await_ready()
    qemu.begin()
    plane.ask(verb="limit", guest=GUEST, limit_mib=RAM_MIB // 4)
    for _ in range(3):
        Deadline(0.0).pause(0.5)
        assert wait_until(lambda: plane.view()["counters"]["loads"] > 500, DEADLINE_SECONDS)
        plane.kill()
        plane.start()
        plane.await_ready()
    qemu.stop()
    plane.detach()
    counts = qemu.finish()
    assert counts["wrong"] == 0
    assert counts["accesses"] > 1000
