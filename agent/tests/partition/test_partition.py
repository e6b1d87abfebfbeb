"""The partition on hosts with systemd and without: made, read back, undone; who may take pool memory all the same."""

from pathlib import Path

import pytest

from pondstack.domain.errors import DeviceFailed
from pondstack_agent.partition import Gap, Partition
from pondstack_agent.partition.partition import Kind

from .host_tree import BOUND, DAEMONS, LOCAL, SLICES, SYSTEM, UNBOUND, HostTree

FOLDER = "etc/systemd/system"
DROP_IN = "60-pondstack-partition.conf"


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    """A host with systemd, nothing confined."""
    return HostTree(tmp_path)


def partition(tree: HostTree) -> Partition:
    """Its partition."""
    return Partition(SYSTEM, DAEMONS, tree.host)


def test_an_untouched_host_is_open(tree: HostTree) -> None:
    assert partition(tree).gaps() == [Gap(Kind.SYSTEM, name) for name in SYSTEM]


def test_made_now_and_for_the_next_boot(tree: HostTree) -> None:
    made = partition(tree).make()
    assert sorted(made) == sorted([*SYSTEM, *DAEMONS])
    assert [tree.mems(name) for name in SYSTEM] == [LOCAL] * 3
    texts = {path.parent.name: path.read_text() for path in (tree.root / FOLDER).glob(f"*.d/{DROP_IN}")}
    assert "[Slice]\nAllowedMemoryNodes=0-1\n" in texts["system.slice.d"]
    assert "[Scope]\nAllowedMemoryNodes=0-1\n" in texts["init.scope.d"]
    assert "[Service]\nNUMAPolicy=bind\nNUMAMask=0-1\n" in texts["libvirtd.service.d"]
    assert ("daemon-reload",) in tree.commands
    assert partition(tree).gaps() == []


def test_made_already_changes_nothing(tree: HostTree) -> None:
    partition(tree).make()
    tree.commands.clear()
    assert partition(tree).make(restart=True) == []
    assert tree.commands == []


def test_what_an_operator_confined_stays_the_operators(tree: HostTree) -> None:
    for name in SLICES:
        tree.confine(name, "0")
    assert not set(partition(tree).make()) & set(SLICES)
    partition(tree).undo()
    assert [tree.mems(name) for name in SLICES] == ["0", "0"]


@pytest.mark.parametrize("nodes", ["0-2", "2"])
def test_more_than_local_nodes_is_no_confinement(tree: HostTree, nodes: str) -> None:
    tree.confine("system.slice", nodes)
    assert partition(tree).gaps()[0] == Gap(Kind.SYSTEM, "system.slice", nodes)


def test_systemd_that_applies_later_is_waited_for(tree: HostTree) -> None:
    tree.late = 5
    partition(tree).make()
    assert partition(tree).gaps() == []


def test_systemd_that_never_applies_is_read_back(tree: HostTree) -> None:
    tree.late = 10**6
    partition(tree).make()
    assert {gap.name for gap in partition(tree).gaps()} == set(SYSTEM)


@pytest.mark.parametrize("verb", ["daemon-reload", "set-property"])
def test_systemd_that_refuses(tree: HostTree, verb: str) -> None:
    tree.refuses = verb
    with pytest.raises(DeviceFailed, match="Access denied"):
        partition(tree).make()


def test_a_drop_in_of_other_nodes_is_written_again(tree: HostTree) -> None:
    partition(tree).make()
    (tree.root / "sys/devices/system/node/has_cpu").write_text("0\n")
    assert set(partition(tree).make()) == {*SYSTEM, *DAEMONS}
    assert [tree.mems(name) for name in SYSTEM] == ["0"] * 3


def test_undone_leaves_nothing(tree: HostTree) -> None:
    partition(tree).make()
    assert sorted(partition(tree).undo()) == sorted([*SYSTEM, *DAEMONS])
    assert [tree.mems(name) for name in SYSTEM] == [""] * 3
    assert tree.files() == set()
    assert partition(tree).undo() == []


def test_without_systemd_the_cgroups_are_written(tmp_path: Path) -> None:
    tree = HostTree(tmp_path, systemd=False)
    assert partition(tree).make() == list(SYSTEM)
    assert [tree.mems(name) for name in SYSTEM] == [LOCAL] * 3
    assert (tree.cgroups / "cgroup.subtree_control").read_text() == "+cpuset"
    assert partition(tree).undo() == list(SYSTEM)
    assert [tree.mems(name) for name in SYSTEM] == [""] * 3
    assert tree.files() == set()


def test_cgroups_that_are_not_there_are_nobodys(tree: HostTree) -> None:
    partition(tree).make()
    assert Partition(["machine.slice/none.slice"], DAEMONS, tree.host).gaps() == []


# Who starts guests.


def test_a_daemon_without_a_policy_is_open_until_its_restart(tree: HostTree) -> None:
    tree.process(7, "libvirtd", maps=UNBOUND)
    assert partition(tree).make() != []
    assert partition(tree).gaps() == [Gap(Kind.DAEMON, "libvirtd.service")]
    assert ("try-restart", "libvirtd.service") not in tree.commands
    assert partition(tree).make(restart=True) == ["libvirtd.service (restarted)"]
    assert tree.commands[-1] == ("try-restart", "libvirtd.service")


def test_a_daemon_with_its_policy_is_left_alone(tree: HostTree) -> None:
    tree.process(7, "virtqemud", maps=BOUND)
    partition(tree).make(restart=True)
    assert "try-restart" not in {words[0] for words in tree.commands}
    assert partition(tree).gaps() == []


@pytest.mark.parametrize("policy", ["prefer:0", "interleave:0-1", "bind:0-2", "bind:2", "local", "prefer (many):0"])
def test_a_policy_that_leaves_local_nodes_is_none(tree: HostTree, policy: str) -> None:
    partition(tree).make()
    tree.process(7, "libvirtd", maps=f"{BOUND}7f00 {policy} anon=1 N0=1\n")
    assert [gap.kind for gap in partition(tree).gaps()] == [Kind.DAEMON]


# Guests.


def test_a_plain_guest_in_a_cpuset_or_with_a_policy_is_no_gap(tree: HostTree) -> None:
    partition(tree).make()
    tree.guest(8, "in-a-cpuset", allowed="0-1")
    tree.guest(9, "with-a-policy", maps=BOUND)
    assert partition(tree).gaps() == []


def test_a_guest_of_the_pool_that_is_off_the_record_is_left_alone(tree: HostTree) -> None:
    """The agent lost its state: its memory must not be moved away below it."""
    partition(tree).make()
    tree.guest(8, "stranger", group="/machine.slice/machine-qemu-1.scope", maps=f"{UNBOUND}7f00 prefer:2 N2=1\n")
    assert partition(tree).confine_guests(()) == []
    assert tree.mems("machine.slice/machine-qemu-1.scope") == ""


def test_a_guest_that_takes_of_both_is_a_gap(tree: HostTree) -> None:
    partition(tree).make()
    tree.guest(8, "plain", maps="7f00 interleave:0-2 N2=1\n")
    assert partition(tree).gaps() == [Gap(Kind.GUEST, "plain")]


def test_one_thread_outside_of_the_cpuset_is_enough(tree: HostTree) -> None:
    partition(tree).make()
    tree.guest(8, "plain", allowed="0")
    other = tree.root / "proc/8/task/9"
    other.mkdir()
    (other / "status").write_text("Mems_allowed_list:\t0-2\n")
    assert partition(tree).gaps() == [Gap(Kind.GUEST, "plain")]


@pytest.mark.parametrize(
    ("name", "threads"),
    [("machine.slice/machine-qemu-{}.scope", "/libvirt/emulator"), ("machine/qemu-{}-vm.libvirt-qemu", "/emulator")],
)
def test_a_plain_guest_that_ran_before_is_bound(tree: HostTree, name: str, threads: str) -> None:
    """As libvirt makes cgroups with systemd, and without."""
    partition(tree).make()
    tree.guest(8, "plain", group=f"/{name.format(1)}", threads=threads)
    tree.guest(9, "of-the-pool", group=f"/{name.format(2)}", threads=threads)
    assert partition(tree).confine_guests({"of-the-pool"}) == ["plain"]
    assert tree.mems(name.format(1)) == LOCAL
    assert tree.mems(name.format(2)) == ""


@pytest.mark.parametrize("group", ["/", "/machine.slice/shared.scope"])
def test_a_guest_without_a_cgroup_of_its_own_is_a_gap(tree: HostTree, group: str) -> None:
    partition(tree).make()
    tree.process(10, "something else", group=group)
    tree.guest(8, "plain", group=group)
    assert partition(tree).confine_guests(()) == []
    assert partition(tree).gaps() == [Gap(Kind.GUEST, "plain")]


def test_a_guest_of_the_pool_from_before_is_told_apart(tree: HostTree) -> None:
    backend = "7f00 prefer:2 anon=1 N2=1\n7f01 prefer (many):2 anon=1 N2=1\n"
    tree.guest(8, "bound", maps=BOUND + backend)
    tree.guest(9, "from-before", maps=UNBOUND + backend)
    tree.guest(10, "of-another-node", maps=BOUND + "7f00 bind:3 anon=1 N3=1\n")
    holders = {"bound": 2, "from-before": 2, "of-another-node": 2, "not-running": 2}
    assert partition(tree).unbound_holders(holders) == ["from-before", "of-another-node"]
