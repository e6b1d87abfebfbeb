"""What an attach does about the partition, and the operator's command."""

from pathlib import Path

import pytest

from agent.tests.partition.host_tree import DAEMONS, LOCAL, SYSTEM, UNBOUND, HostTree
from pondstack.devices import pool_uuid
from pondstack.domain.errors import HostUnusable
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.cxl import partition_check, partition_command
from pondstack_agent.drivers.cxl.allocations import Allocations
from pondstack_agent.partition import Partition


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    """A host with systemd, nothing confined."""
    return HostTree(tmp_path / "host")


def test_an_attach_makes_the_partition(tree: HostTree) -> None:
    tree.guest(8, "plain", group="/machine.slice/machine-qemu-1.scope", maps=UNBOUND)
    with pytest.raises(HostUnusable, match=r"guest plain.*guest_anywhere"):  # no kernel moves this process's cpuset
        partition_check.ensure(Partition(SYSTEM, DAEMONS, tree.host), ["of-the-pool"], make=True)
    assert [tree.mems(name) for name in (*SYSTEM, "machine.slice/machine-qemu-1.scope")] == [LOCAL] * 4
    partition_check.ensure(Partition(SYSTEM, DAEMONS, tree.host), ["of-the-pool", "plain"], make=True)


def test_an_attach_that_only_looks_changes_nothing(tree: HostTree) -> None:
    with pytest.raises(HostUnusable, match=r"system.slice may have memory of any node.*=0-1.*system_anywhere"):
        partition_check.ensure(Partition(SYSTEM, DAEMONS, tree.host), (), make=False)
    assert tree.files() == set()


def test_the_refusal_says_why_the_agent_could_not(tree: HostTree) -> None:
    tree.refuses = "set-property"
    with pytest.raises(HostUnusable, match=r"Access denied.*pondstack-partition make.*system_anywhere"):
        partition_check.ensure(Partition(SYSTEM, DAEMONS, tree.host), (), make=True)


def test_a_daemon_that_must_restart_refuses(tree: HostTree) -> None:
    tree.process(7, "libvirtd")
    with pytest.raises(HostUnusable, match=r"libvirtd.service runs without.*pondstack-partition make.*daemon_anywhere"):
        partition_check.ensure(Partition(SYSTEM, DAEMONS, tree.host), (), make=True)
    assert "try-restart" not in {words[0] for words in tree.commands}


def test_the_command(tree: HostTree, capsys: pytest.CaptureFixture[str]) -> None:
    partition = Partition(SYSTEM, DAEMONS, tree.host)
    assert partition_command.run("show", partition, ()) == 1
    assert "open: system system.slice may have memory of any node" in capsys.readouterr().out
    assert partition_command.run("make", partition, ()) == 0
    assert "closed" in capsys.readouterr().out
    assert partition_command.run("show", partition, ()) == 0
    assert partition_command.run("undo", partition, ()) == 0
    assert tree.files() == set()
    assert partition_command.run("show", partition, ()) == 1


def test_the_command_knows_who_holds_pool_memory(tmp_path: Path) -> None:
    assert partition_command.holders(tmp_path / "none") == set()
    assert not (tmp_path / "none").exists()
    grant = Grant("a", "guest-1", "host1", pool_uuid("s"), "pool0", {}, 1024, (Extent(0, 1),), 1)
    Allocations(tmp_path, lambda _name: None).begin(grant)
    assert partition_command.holders(tmp_path) == {"guest-1"}


def test_the_command_reads_the_agents_configuration(tmp_path: Path) -> None:
    path = tmp_path / "agent.conf"
    path.write_text("[cxl]\nguest_units = my.service\n")
    conf = partition_command.configure(["--config-file", str(path), "undo"])
    assert (conf.command, conf.cxl.guest_units) == ("undo", ["my.service"])
    with pytest.raises(SystemExit):
        partition_command.configure(["--config-file", str(path), "other"])
