"""The XML of a zNUMA guest, by its structure."""

from typing import Any

import pytest
from lxml import etree
from nova.virt.libvirt import config as vconfig

from pondstack.domain.errors import BadRequest, Conflict
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Attachment, Backing
from pondstack_nova.compute import znuma

FILE = Backing("file", 1024, path="/pool", offset_bytes=0)
NODE = Backing("node", 2048, host_node=2, distance=25)
DEVDAX = Backing("devdax", 2048, path="/dev/dax0.1")


def _attachment(*backings: Backing) -> Attachment:
    total = sum(backing.size_mib for backing in backings)
    extents = tuple(Extent(10 * i, b.size_mib // 1024) for i, b in enumerate(backings))
    return Attachment("a", "vm", "pool", "pool0", total, 1, extents, backings)


def _guest(vcpus: int = 2) -> Any:
    guest = vconfig.LibvirtConfigGuest()
    guest.virt_type, guest.os_type, guest.name, guest.uuid = "qemu", "hvm", "vm", "uuid"
    guest.vcpus, guest.memory = vcpus, 4096 * 1024
    return guest


def _document(guest: Any) -> Any:
    return etree.fromstring(guest.to_xml())


def _table(document: Any) -> list[list[str]]:
    return [[s.get("value") for s in cell.findall("distances/sibling")] for cell in document.findall("cpu/numa/cell")]


def test_one_slice_file() -> None:
    guest = _guest()
    znuma.apply(guest, _attachment(FILE), 4096, "/bin/head", ())
    document = _document(guest)
    local, pool = document.findall("cpu/numa/cell")
    assert dict(local.attrib) == {"id": "0", "cpus": "0-1", "memory": str(3072 * 1024)}
    assert dict(pool.attrib) == {"id": "1", "memory": str(1024 * 1024), "memAccess": "shared"}
    assert _table(document) == [["10", "20"], ["20", "10"]]
    assert document.findtext("devices/emulator") == "/bin/head"
    assert document.findtext("memory") == str(4096 * 1024)
    assert document.find("numatune") is None
    assert document.find("memoryBacking") is None


def test_one_cell_per_extent_and_no_distance_of_10_between_pool_cells() -> None:
    guest = _guest()
    znuma.apply(guest, _attachment(FILE, FILE), 4096, "/bin/head", ())
    document = _document(guest)
    assert [cell.get("memory") for cell in document.findall("cpu/numa/cell")] == ["2097152", "1048576", "1048576"]
    assert _table(document) == [["10", "20", "20"], ["20", "10", "20"], ["20", "20", "10"]]


def test_host_nodes_are_preferred_and_local_memory_bound_to_the_hosts_own_dram() -> None:
    guest = _guest()
    znuma.apply(guest, _attachment(NODE), 4096, "", {0, 1})
    document = _document(guest)
    assert [dict(node.attrib) for node in document.findall("numatune/memnode")] == [
        {"cellid": "0", "mode": "strict", "nodeset": "0-1"},
        {"cellid": "1", "mode": "preferred", "nodeset": "2"},
    ]
    assert document.find("numatune/memory") is None  # a cpuset of local nodes would refuse the pool's, too
    assert document.find("devices/emulator") is None
    assert "memAccess" not in document.findall("cpu/numa/cell")[1].attrib
    assert _table(document) == [["10", "25"], ["25", "10"]]


@pytest.mark.parametrize("local", [(), (0, 1)])
def test_slices_that_qemu_maps_are_shared_files_to_libvirt(local: tuple[int, ...]) -> None:
    """On a host that has pool nodes too, the guest's other memory must not come from them."""
    guest = _guest()
    znuma.apply(guest, _attachment(DEVDAX), 4096, "/bin/head", local)
    document = _document(guest)
    assert [cell.get("memAccess") for cell in document.findall("cpu/numa/cell")] == [None, "shared"]
    assert document.findtext("devices/emulator") == "/bin/head"
    nodes = [dict(node.attrib) for node in document.findall("numatune/memnode")]
    assert nodes == ([{"cellid": "0", "mode": "strict", "nodeset": "0-1"}] if local else [])


def test_the_cpu_model_of_nova_stays() -> None:
    guest = _guest()
    guest.cpu = vconfig.LibvirtConfigGuestCPU()
    guest.cpu.mode = "host-passthrough"
    znuma.apply(guest, _attachment(FILE), 4096, "/bin/head", ())
    assert _document(guest).find("cpu").get("mode") == "host-passthrough"


@pytest.mark.parametrize("backing", [FILE, DEVDAX])
def test_shared_backing_without_the_head_is_refused(backing: Backing) -> None:
    with pytest.raises(BadRequest, match=r"\[pondstack\] emulator is not set"):
        znuma.apply(_guest(), _attachment(backing), 4096, "", ())


def test_a_guest_with_numa_nodes_of_its_own_is_refused() -> None:
    guest = _guest()
    guest.cpu = vconfig.LibvirtConfigGuestCPU()
    guest.cpu.numa = vconfig.LibvirtConfigGuestCPUNUMA()
    with pytest.raises(Conflict, match="NUMA nodes"):
        znuma.apply(guest, _attachment(FILE), 4096, "/bin/head", ())
    pinned = _guest()
    pinned.numatune = vconfig.LibvirtConfigGuestNUMATune()
    with pytest.raises(Conflict, match="NUMA nodes"):
        znuma.apply(pinned, _attachment(FILE), 4096, "/bin/head", ())


def test_file_backed_memory_of_the_whole_host_is_refused() -> None:
    guest = _guest()
    guest.membacking = vconfig.LibvirtConfigGuestMemoryBacking()
    guest.membacking.filesource = True
    with pytest.raises(Conflict, match="file_backed_memory"):
        znuma.apply(guest, _attachment(FILE), 4096, "/bin/head", ())


def test_a_guest_whose_memory_is_pinned_or_encrypted_is_refused() -> None:
    """The net below API and scheduler: a port or a mediated device that they could not see."""
    interface = vconfig.LibvirtConfigGuestInterface()
    guests = []
    for device in (vconfig.LibvirtConfigGuestHostdevPCI(), vconfig.LibvirtConfigGuestHostdevMDEV(), interface):
        guests.append(_guest())
        guests[-1].add_device(device)
    guests.append(_guest())
    guests[-1].launch_security = vconfig.LibvirtConfigGuestSEVLaunchSecurity()
    for net_type in ("hostdev", "vdpa"):
        interface.net_type = net_type
        for guest in guests:
            with pytest.raises(Conflict, match="pins or encrypts"):
                znuma.apply(guest, _attachment(FILE), 4096, "/bin/head", ())
    interface.net_type = "bridge"
    znuma.apply(guests[2], _attachment(FILE), 4096, "/bin/head", ())


def test_some_memory_must_stay_local() -> None:
    with pytest.raises(BadRequest, match="0 MiB of local memory"):
        znuma.apply(_guest(), _attachment(FILE), 1024, "/bin/head", ())


def test_backings_must_add_up() -> None:
    wrong = Attachment("a", "vm", "pool", "pool0", 2048, 1, (Extent(0, 2),), (FILE,))
    with pytest.raises(BadRequest, match="do not add up"):
        znuma.apply(_guest(), wrong, 4096, "/bin/head", ())


def test_a_guests_pool_cells_are_found_in_libvirts_own_xml() -> None:
    guest = _guest()
    znuma.apply(guest, _attachment(FILE, FILE), 4096, "/bin/head", ())
    assert znuma.pool_cells_mib(guest.to_xml()) == (1024, 1024)
    as_libvirt_says = "<domain><cpu><numa><cell id='0' cpus='0' memory='64' unit='MiB'/><cell id='1' memory='1' unit='GiB'/></numa></cpu></domain>"  # noqa: E501
    assert znuma.pool_cells_mib(as_libvirt_says) == (1024,)
    assert znuma.pool_cells_mib("<domain/>") == ()


def test_moved_guests_are_bound_to_the_destinations_nodes() -> None:
    guest = _guest()
    znuma.apply(guest, _attachment(NODE), 4096, "", {0})
    pins = znuma.cell_pins(_attachment(Backing("node", 2048, host_node=7)).backings, {0, 1})
    assert pins == {"0": {0, 1}, "1": {7}}
    moved = etree.fromstring(znuma.rebind(guest.to_xml(), pins))
    assert [(n.get("cellid"), n.get("nodeset")) for n in moved.findall("numatune/memnode")] == [
        ("0", "0-1"),
        ("1", "7"),
    ]


def test_a_guest_without_pool_memory_is_bound_to_local_nodes() -> None:
    guest = _guest()
    znuma.bind_local(guest, {0, 1})
    document = _document(guest)
    assert dict(document.find("numatune/memory").attrib) == {"mode": "strict", "nodeset": "0-1"}
    assert document.find("numatune/memnode") is None
    assert document.find("cpu/numa") is None


def test_a_host_without_nodes_or_a_guest_with_novas_own_is_left_alone() -> None:
    guest = _guest()
    znuma.bind_local(guest, ())
    assert guest.numatune is None
    guest.numatune = novas = vconfig.LibvirtConfigGuestNUMATune()
    znuma.bind_local(guest, {0})
    assert guest.numatune is novas
    assert novas.memory is None


def test_another_host_gets_no_binding_of_this_ones_nodes() -> None:
    guest = _guest()
    znuma.bind_local(guest, {0, 1})
    assert etree.fromstring(znuma.unbind(guest.to_xml())).find("numatune") is None
    both = "<domain><numatune><memory mode='strict' nodeset='0'/><memnode cellid='0' mode='strict' nodeset='0'/></numatune></domain>"  # noqa: E501
    assert etree.fromstring(znuma.unbind(both)).find("numatune/memnode") is not None


def test_a_binding_that_the_destination_does_not_know_is_dropped() -> None:
    guest = _guest()
    znuma.apply(guest, _attachment(NODE), 4096, "", {0})
    moved = etree.fromstring(znuma.rebind(guest.to_xml(), {"1": {7}}))
    assert [node.get("cellid") for node in moved.findall("numatune/memnode")] == ["1"]


def _pooled(*backings: Backing, emulator: str = "/bin/head") -> str:
    guest = _guest()
    znuma.apply(guest, _attachment(*backings), 4096, emulator, {0})
    return str(guest.to_xml())


def _bound(xml: str) -> list[tuple[str, ...]]:
    found = etree.fromstring(xml).findall("numatune/memnode")
    return [(node.get("cellid"), node.get("mode"), node.get("nodeset")) for node in found]


def test_a_corrected_guest_keeps_its_cells_on_local_nodes() -> None:
    xml = _pooled(NODE)
    assert znuma.uses_pool(xml, {0, 1})
    local = znuma.to_local(xml, {0, 1})
    assert _bound(local) == [("0", "strict", "0"), ("1", "strict", "0-1")]
    assert znuma.pool_cells_mib(local) == (2048,)
    assert not znuma.uses_pool(local, {0, 1})
    assert znuma.to_local(local, {0, 1}) == local


def test_a_destination_that_backs_all_by_its_own_memory_gets_no_binding_and_no_file() -> None:
    for xml in (_pooled(NODE), _pooled(FILE), znuma.to_local(_pooled(NODE), {0})):
        left = etree.fromstring(znuma.leave(xml))
        assert left.find("numatune") is None
        assert [cell.get("memAccess") for cell in left.findall("cpu/numa/cell")] == [None, None]
        assert znuma.pool_cells_mib(etree.tostring(left).decode())
    assert znuma.on_files(_pooled(FILE))
    assert not znuma.on_files(znuma.leave(_pooled(FILE)))
    assert not znuma.on_files(_pooled(NODE))


def test_a_plain_guest_is_left_as_it_is() -> None:
    guest = _guest()
    assert znuma.to_local(guest.to_xml(), {0}) == guest.to_xml()
    znuma.bind_local(guest, {0, 1})
    assert etree.fromstring(znuma.leave(guest.to_xml())).find("numatune") is None
