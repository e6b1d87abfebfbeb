"""Pool nodes of a host are told from its own by the kernel, whatever libvirt knows, and kept out of what it offers."""

import shutil
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import pytest
from nova.compute import provider_tree
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import driver

from pondstack.domain.admission import LentReport
from pondstack_nova import stats
from pondstack_nova.compute import host_nodes
from pondstack_nova.virt_libvirt import PondLibvirtDriver

MIB = 1024
PLAIN = {0: 8192}
WITH_POOL = {0: 8192, 2: 1024, 3: 2048}


class Nodes:
    """The kernel's nodes: node 0 and the empty node 1 have CPUs; those with memory change as blocks come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def become(self, nodes: dict[int, int]) -> None:
        """Let the host have these nodes with so many MiB each."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        (self.folder / "has_cpu").write_text("0-1\n")
        (self.folder / "has_memory").write_text(",".join(map(str, nodes)) + "\n")
        for number, mib in nodes.items():
            (self.folder / f"node{number}").mkdir()
            text = f"Node {number} MemTotal:       {mib * MIB} kB\nNode {number} MemFree:  1 kB\n"
            (self.folder / f"node{number}" / "meminfo").write_text(text)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    """The nodes that our driver finds."""
    nodes = Nodes(tmp_path / "node")
    nodes.become(WITH_POOL)
    monkeypatch.setattr(host_nodes, "read", partial(host_nodes.read, nodes.folder))
    return nodes


def test_nodes_without_cpus_are_pool(kernel: Nodes) -> None:
    assert host_nodes.read() == host_nodes.HostNodes(frozenset({0}), frozenset({2, 3}), 8192)
    kernel.become(PLAIN)
    assert host_nodes.read() == host_nodes.HostNodes(frozenset({0}), frozenset(), 8192)
    shutil.rmtree(kernel.folder)
    assert host_nodes.read() == host_nodes.HostNodes(frozenset(), frozenset(), 0), "a kernel without NUMA"


@pytest.fixture
def pond(kernel: Nodes) -> Any:
    """A driver without a libvirt: only what the tested methods touch."""
    driver_object = object.__new__(PondLibvirtDriver)
    driver_object.kernel = kernel
    driver_object.lent_memory = SimpleNamespace(read=lambda _host: driver_object.lent)
    driver_object.lent = LentReport(0, 1)
    driver_object.lost_guests = SimpleNamespace(read=lambda _host: [])
    return driver_object


def _tree(total: int) -> Any:
    tree = provider_tree.ProviderTree()
    tree.new_root("h1", "11111111-2222-3333-4444-555555555555")
    inventory = {"total": total, "max_unit": total, "min_unit": 1, "reserved": 512, "step_size": 1}
    return tree, {"MEMORY_MB": inventory, "VCPU": {"total": 2}}


def _update(pond: Any, total: int) -> Any:
    tree, inventory = _tree(total)

    def nova(_self: Any, provider: Any, nodename: str, allocations: Any = None) -> None:
        del allocations
        provider.update_inventory(nodename, inventory)

    with patch.object(driver.LibvirtDriver, "update_provider_tree", nova):
        pond.update_provider_tree(tree, "h1")
    return tree.data("h1").inventory


def test_pool_nodes_are_kept_out_of_memory_mb(pond: Any) -> None:
    inventory = _update(pond, 8192 + 3072)
    assert inventory["MEMORY_MB"] == {"total": 8192, "max_unit": 8192, "min_unit": 1, "reserved": 512, "step_size": 1}
    assert inventory["VCPU"] == {"total": 2}
    assert pond.provider_tree.data("h1").inventory["MEMORY_MB"]["total"] == 8192


def test_what_is_lent_of_the_rest_is_reserved(pond: Any) -> None:
    pond.lent = LentReport(1024, 7)
    assert _update(pond, 8192 + 3072)["MEMORY_MB"]["reserved"] == 1536
    pond.lent = LentReport(9000, 7)
    assert _update(pond, 8192 + 3072)["MEMORY_MB"]["reserved"] == 8192


def test_a_host_without_pool_nodes_is_left_as_nova_says(pond: Any) -> None:
    pond.kernel.become(PLAIN)
    assert _update(pond, 8192)["MEMORY_MB"]["total"] == 8192


@pytest.mark.parametrize("counted", [0, 1024, 3072])
def test_the_hosts_own_memory_is_the_total_whichever_nodes_libvirt_counts_in(pond: Any, counted: int) -> None:
    """It knows those that were there when it started."""
    pond.kernel.become(PLAIN)
    _update(pond, 8192)
    pond.kernel.become(WITH_POOL)
    assert _update(pond, 8192 + counted)["MEMORY_MB"]["total"] == 8192


def test_the_total_that_the_operator_sets_is_not_touched(pond: Any) -> None:
    with patch.object(driver.CONF.libvirt, "file_backed_memory", 5000, create=True):
        assert _update(pond, 5000)["MEMORY_MB"]["total"] == 5000


def test_the_hypervisors_figures_leave_pool_nodes_out(pond: Any) -> None:
    for total, used, told in ((8192 + 3072, 9000, 8192), (8192, -2048, 0)):
        answer = {"memory_mb": total, "memory_mb_used": used}
        with patch.object(driver.LibvirtDriver, "get_available_resource", lambda _self, _node, a=answer: dict(a)):
            figures = pond.get_available_resource("h1")
            assert figures == {
                "memory_mb": 8192,
                "memory_mb_used": told,
                "stats": {stats.BY_CLAIM: "1", stats.LEAVES_OUT: "1"},
            }


def test_no_nova_numa_node_is_fitted_to_a_pool_node(pond: Any) -> None:
    cells = [SimpleNamespace(id=0), SimpleNamespace(id=2), SimpleNamespace(id=3)]
    with patch.object(driver.LibvirtDriver, "_get_host_numa_topology", lambda _self: SimpleNamespace(cells=cells)):
        assert [cell.id for cell in pond._get_host_numa_topology().cells] == [0]
    with patch.object(driver.LibvirtDriver, "_get_host_numa_topology", lambda _self: None):
        assert pond._get_host_numa_topology() is None


# Guests without pool memory.


def _config_of(pond: Any, *, numatune: Any = None, attachment: Any = None) -> Any:
    config = vconfig.LibvirtConfigGuest()
    config.numatune = numatune
    pond._pond_attachment = lambda _instance: attachment
    with patch.object(driver.LibvirtDriver, "_get_guest_config", lambda _self, _instance: config):
        return pond._get_guest_config(SimpleNamespace(uuid="guest", flavor=SimpleNamespace(extra_specs={})))


def test_guests_without_pool_memory_are_bound_where_there_are_pool_nodes(pond: Any) -> None:
    bound = _config_of(pond).numatune.memory
    assert (bound.mode, bound.nodeset) == ("strict", {0})
    novas = vconfig.LibvirtConfigGuestNUMATune()
    assert _config_of(pond, numatune=novas).numatune is novas
    pond.kernel.become(PLAIN)
    assert _config_of(pond).numatune is None


@pytest.mark.parametrize(("topology", "kept"), [(None, False), (object(), True)])
def test_they_move_without_this_hosts_nodes(pond: Any, topology: Any, kept: bool) -> None:
    xml = "<domain><numatune><memory mode='strict' nodeset='0'/></numatune></domain>"
    moved: list[str] = []
    guest = SimpleNamespace(migrate=lambda *_args, destination_xml=None, **_kwargs: moved.append(destination_xml))
    guest.get_xml_desc = lambda: xml
    flavor = SimpleNamespace(extra_specs={})
    instance = SimpleNamespace(uuid="guest", flavor=flavor, numa_topology=topology)

    def operation(_self: Any, _context: Any, _instance: Any, _dest: Any, _block: Any, _data: Any, guest: Any) -> None:
        guest.migrate("there", destination_xml=xml)

    with patch.object(driver.LibvirtDriver, "_live_migration_operation", operation):
        pond._live_migration_operation(None, instance, "there", False, {}, guest)
    assert ("numatune" in moved[0]) is kept


@pytest.mark.parametrize("stays", [True, False])
def test_nova_hears_of_a_failed_move_where_the_guest_is_gone(pond: Any, stays: bool) -> None:
    """Where it is here, the migration is undone, and an exception would have its server in ERROR afterwards."""
    guest = SimpleNamespace(get_xml_desc=lambda: "<domain/>", is_active=lambda: stays)
    instance = SimpleNamespace(uuid="guest", flavor=SimpleNamespace(extra_specs={}), numa_topology=None)
    failed = patch.object(driver.LibvirtDriver, "_live_migration_operation", Mock(side_effect=OSError("it failed")))
    with failed, nullcontext() if stays else pytest.raises(OSError, match="it failed"):
        assert pond._live_migration_operation(None, instance, "there", False, {}, guest) is None
