"""Cgroups of the host's own processes, confined to local nodes or not."""

from pathlib import Path

import pytest

from pondstack.domain.errors import HostUnusable
from pondstack_agent.drivers.cxl import cpuset_check
from pondstack_agent.drivers.cxl.sysfs import Sysfs

GROUPS = ("system.slice", "user.slice")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Local nodes 0 and 1; of the cgroups only system.slice."""
    (tmp_path / cpuset_check.HAS_CPU).parent.mkdir(parents=True)
    (tmp_path / cpuset_check.HAS_CPU).write_text("0-1\n")
    (tmp_path / cpuset_check.CGROUPS / "system.slice").mkdir(parents=True)
    return tmp_path


def confine(root: Path, nodes: str) -> None:
    """Write a cgroup's own nodes."""
    (root / cpuset_check.CGROUPS / "system.slice/cpuset.mems").write_text(f"{nodes}\n")


@pytest.mark.parametrize("nodes", ["0", "1", "0-1"])
def test_confined_to_local_nodes(root: Path, nodes: str) -> None:
    confine(root, nodes)
    cpuset_check.check(Sysfs(root), GROUPS)


@pytest.mark.parametrize(("nodes", "named"), [("0-2", "0-2"), ("2", "2"), ("", "any")])
def test_not_confined(root: Path, nodes: str, named: str) -> None:
    confine(root, nodes)
    with pytest.raises(HostUnusable, match=rf"memory of {named} node.*AllowedMemoryNodes=0-1.*system_anywhere"):
        cpuset_check.check(Sysfs(root), GROUPS)


def test_without_the_controller_nothing_is_confined(root: Path) -> None:
    with pytest.raises(HostUnusable, match="system_anywhere"):
        cpuset_check.check(Sysfs(root), GROUPS)


def test_cgroups_that_do_not_exist(root: Path) -> None:
    cpuset_check.check(Sysfs(root), ["user.slice"])
