"""How a guest's cgroup is found."""

from pathlib import Path

import pytest

from pondstack.domain.errors import HostUnusable
from pondstack_agent.host.cgroup import own_group
from pondstack_agent.mitigation.guest import Guest, cgroup_of

SCOPE = "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope"
GROUP = "/machine/qemu-1-instance-00000001.libvirt-qemu"
"""The same on a host without systemd."""
GUEST = Guest("vm1", 10)


@pytest.mark.parametrize(
    ("text", "group"),
    [
        (f"0::{SCOPE}/libvirt/emulator\n", SCOPE),
        (f"0::{SCOPE}\n", SCOPE),
        (f"0::{GROUP}/emulator\n", GROUP),
        (f"0::{GROUP}\n", GROUP),
        ("0::/guests/vm1\n", "/guests/vm1"),
        ("4:cpuset:/machine\n", "/"),
    ],
)
def test_the_machine_is_above_its_threads(text: str, group: str) -> None:
    assert own_group(text) == group


@pytest.fixture
def scope(tmp_path: Path) -> Path:
    """A cgroup with a cpuset and the guest alone in it."""
    folder = tmp_path / "cgroup" / SCOPE[1:]
    folder.mkdir(parents=True)
    (folder / "cpuset.mems").write_text("\n")
    (folder / "cpuset.mems.effective").write_text("0-1\n")
    (folder / "cgroup.procs").write_text("10\n")
    (tmp_path / "10").mkdir()
    (tmp_path / "10/cgroup").write_text(f"0::{SCOPE}/libvirt/emulator\n")
    return folder


@pytest.mark.usefixtures("scope")
def test_a_cgroup_of_its_own(tmp_path: Path) -> None:
    assert cgroup_of(GUEST, tmp_path, tmp_path / "cgroup").allowed() == {0, 1}


def test_refused(tmp_path: Path, scope: Path) -> None:
    (scope / "cgroup.procs").write_text("10\n11\n")
    with pytest.raises(HostUnusable, match="other processes"):
        cgroup_of(GUEST, tmp_path, tmp_path / "cgroup")
    (scope / "cpuset.mems").unlink()
    with pytest.raises(HostUnusable, match=r"\+cpuset"):
        cgroup_of(GUEST, tmp_path, tmp_path / "cgroup")
    (tmp_path / "10/cgroup").write_text("0::/\n")
    with pytest.raises(HostUnusable, match="no cgroup of its own"):
        cgroup_of(GUEST, tmp_path, tmp_path / "cgroup")
