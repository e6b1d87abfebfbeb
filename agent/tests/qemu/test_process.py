"""What the names of QEMU's threads say."""

from pathlib import Path

import pytest

from pondstack_agent.qemu.process import is_migrating


@pytest.mark.parametrize(
    ("names", "migrating"),
    [
        (["qemu-system-x86", "CPU 0/KVM", "worker"], False),
        (["qemu-system-x86", "live_migration"], True),  # before QEMU 9.1
        (["qemu-system-x86", "mig/src/main"], True),
        (["qemu-system-x86", "mig/src/send_0"], True),
        (["qemu-system-x86", "mig/dst/recv_0"], False),  # the guest is coming
    ],
)
def test_a_guest_on_its_way_to_another_host(tmp_path: Path, names: list[str], migrating: bool) -> None:
    for number, name in enumerate(names):
        folder = tmp_path / "10/task" / str(10 + number)
        folder.mkdir(parents=True)
        (folder / "comm").write_text(f"{name}\n")
    (tmp_path / "10/task/99").mkdir()  # it ended just now
    assert is_migrating(10, tmp_path) is migrating
