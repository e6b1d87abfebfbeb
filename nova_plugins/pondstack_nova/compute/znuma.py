"""A guest's zNUMA nodes as libvirt XML: local memory with all CPUs, then one CPU-less node per backing (Pond 4.2).

Node 0, all local, is always first and private: QEMU under TCG loses guest writes of other first nodes in pre-copy, and
a guest fills its own CPUs' node before it touches the others.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lxml import etree
from nova.virt import hardware
from nova.virt.libvirt import config as vconfig

from pondstack.domain.backing import SHARED
from pondstack.domain.errors import BadRequest, Conflict
from pondstack.rpc.wire import Attachment, Backing
from pondstack_nova.pins import LEGAL

LOCAL_DISTANCE = 10
KIB_PER_MIB = 1024
PINNING_INTERFACES = frozenset({"hostdev", "vdpa"})


class ZNumaCell(vconfig.LibvirtConfigGuestCPUNUMACell):
    """A guest NUMA cell with <distances>, which Nova's own class does not write."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.distances: list[int] = []

    def format_dom(self) -> Any:
        """Return the <cell> element."""
        cell = super().format_dom()
        distances = etree.SubElement(cell, "distances")
        for index, distance in enumerate(self.distances):
            etree.SubElement(distances, "sibling", id=str(index), value=str(distance))
        return cell


class Emulator(vconfig.LibvirtConfigGuestDevice):
    """<emulator>: which QEMU runs the guest."""

    def __init__(self, path: str, **kwargs: Any) -> None:
        super().__init__(root_name="emulator", **kwargs)
        self.path = path

    def format_dom(self) -> Any:
        """Return the <emulator> element."""
        element = super().format_dom()
        element.text = self.path
        return element


def distances(backings: Sequence[Backing]) -> list[list[int]]:
    """Return the SLIT: 10 on the diagonal only (else Linux drops it), a pool node's distance from all others."""
    to_pool = [LOCAL_DISTANCE, *(backing.distance for backing in backings)]
    size = range(len(to_pool))
    return [[LOCAL_DISTANCE if a == b else max(to_pool[a], to_pool[b]) for b in size] for a in size]


def cells(vcpus: int, local_mib: int, backings: Sequence[Backing]) -> list[ZNumaCell]:
    """Return the guest's cells; raises BadRequest when no local memory is left."""
    if local_mib <= 0:
        raise BadRequest(f"the split leaves {local_mib} MiB of local memory; it must leave some")
    table = distances(backings)
    result = []
    for index, size_mib in enumerate([local_mib, *(backing.size_mib for backing in backings)]):
        cell = ZNumaCell()
        cell.id = index
        cell.memory = size_mib * KIB_PER_MIB
        cell.cpus = set(range(vcpus)) if index == 0 else None
        if index and backings[index - 1].kind in SHARED:
            cell.memAccess = "shared"
        cell.distances = table[index]
        result.append(cell)
    return result


def memnodes(backings: Sequence[Backing], local_nodes: Collection[int]) -> list[Any]:
    """Return <memnode>s that give pool cells their host node, if any, and bind the local cell to the host's own DRAM.

    The pool's node is preferred and not strict: the kernel keeps some pages of each node for itself, and a guest that
    touches all of its memory would be killed for the last of them. These come from the next node, local memory.
    """
    bound = [(index, {int(b.host_node)}) for index, b in enumerate(backings, 1) if b.host_node is not None]
    if local_nodes:
        bound.insert(0, (0, set(local_nodes)))
    result = []
    for index, nodes in bound:
        node = vconfig.LibvirtConfigGuestNUMATuneMemNode()
        node.cellid, node.mode, node.nodeset = index, "preferred" if index else "strict", nodes
        result.append(node)
    return result


def apply(guest: Any, attachment: Attachment, memory_mib: int, emulator: str, local_nodes: Collection[int]) -> None:
    """Give a LibvirtConfigGuest its zNUMA nodes.

    Raises Conflict when the guest has NUMA nodes or file-backed memory already, or its memory is pinned or encrypted;
    BadRequest when the host's configuration lacks the emulator that shared backings need, or the sizes do not add up.
    """
    pin = pinned_by(guest)
    if pin:
        raise Conflict(f"the guest has {pin}, which pins or encrypts its memory; {LEGAL}")
    if guest.numatune is not None or (guest.cpu is not None and guest.cpu.numa is not None):
        raise Conflict("the guest has NUMA nodes of Nova's already; pond: specs go with none")
    if guest.membacking is not None and guest.membacking.filesource:
        raise Conflict("[libvirt] file_backed_memory is set on this host; it does not go with pool memory, unset it")
    backings = attachment.backings
    if any(backing.kind in SHARED for backing in backings):
        if not emulator:
            raise BadRequest(
                "[pondstack] emulator is not set in nova.conf of this host; set it to pondstack-qemu's path"
            )
        guest.add_device(Emulator(emulator))
    if sum(backing.size_mib for backing in backings) != attachment.pool_mib:
        raise BadRequest(f"the agent attached {attachment.pool_mib} MiB, but its backings do not add up to that")
    if guest.cpu is None:
        guest.cpu = vconfig.LibvirtConfigGuestCPU()
    guest.cpu.numa = vconfig.LibvirtConfigGuestCPUNUMA()
    guest.cpu.numa.cells = cells(guest.vcpus, memory_mib - attachment.pool_mib, backings)
    nodes = memnodes(backings, local_nodes)
    if nodes:
        guest.numatune = vconfig.LibvirtConfigGuestNUMATune()
        guest.numatune.memnodes = nodes


def bind_local(guest: Any, local_nodes: Collection[int]) -> None:
    """Bind all of a guest without pool memory to the host's own DRAM, QEMU's own memory and page cache included.

    A guest with NUMA nodes of Nova's is bound already: Nova is shown local nodes only.
    """
    if guest.numatune is not None or not local_nodes:
        return
    memory = vconfig.LibvirtConfigGuestNUMATuneMemory()
    memory.mode, memory.nodeset = "strict", set(local_nodes)
    guest.numatune = vconfig.LibvirtConfigGuestNUMATune()
    guest.numatune.memory = memory


def unbind(xml: str) -> str:
    """Return a domain's XML without what `bind_local` wrote: another host has other nodes."""
    document = etree.fromstring(xml)
    for numatune in document.findall("./numatune"):
        for memory in numatune.findall("./memory"):
            numatune.remove(memory)
        if not len(numatune):
            document.remove(numatune)
    return str(etree.tostring(document, encoding="unicode"))


def leave(xml: str) -> str:
    """Return a domain's XML for another host that backs all of it with its own memory, behind the same cells.

    There it is bound by the memory policy that it inherits, as one that `bind_local` made, and by its next start.
    """
    return unbind(to_local(xml, ()))


def to_local(xml: str, local_nodes: Collection[int]) -> str:
    """Return a domain's XML with its pool cells backed by local memory: bound to these nodes, or, if none, to none.

    The XML itself when nothing of it is pool memory.
    """
    if not uses_pool(xml, local_nodes):
        return xml
    document = etree.fromstring(xml)
    for cell in _pool_cells(document):
        cell.attrib.pop("memAccess", None)
    for node in document.findall("./numatune/memnode"):
        if not local_nodes:
            node.getparent().remove(node)
        elif not _nodes_of(node) <= set(local_nodes):
            node.set("mode", "strict")
            node.set("nodeset", hardware.format_cpu_spec(set(local_nodes)))
    return str(etree.tostring(document, encoding="unicode"))


def uses_pool(xml: str, local_nodes: Collection[int]) -> bool:
    """Tell whether a cell of a domain is a file, or names other nodes of the host than `local_nodes`."""
    document = etree.fromstring(xml)
    files = any(cell.get("memAccess") for cell in _pool_cells(document))
    return files or any(not _nodes_of(node) <= set(local_nodes) for node in document.findall("./numatune/memnode"))


def on_files(xml: str) -> bool:
    """Tell whether a domain's CPU-less cells are shared files, which only an attachment can be behind."""
    return any(cell.get("memAccess") for cell in _pool_cells(etree.fromstring(xml)))


def shares_more(xml: str) -> bool:
    """Tell whether a domain shares memory with QEMU's outside beside its CPU-less cells."""
    document = etree.fromstring(xml)
    cells = [cell for cell in document.findall("./cpu/numa/cell") if cell.get("cpus") and cell.get("memAccess")]
    backing = document.find("./memoryBacking")
    wide = backing is not None and any(backing.find(name) is not None for name in ("access[@mode='shared']", "source"))
    return wide or bool(cells)


def pinned_by(guest: Any) -> str | None:
    """Return what of a LibvirtConfigGuest pins or encrypts its memory; None when nothing does."""
    if guest.launch_security is not None:
        return "encrypted memory"
    for device in guest.devices:
        if isinstance(device, vconfig.LibvirtConfigGuestHostdev):
            return f"a host device ({device.type})"
        if isinstance(device, vconfig.LibvirtConfigGuestInterface) and device.net_type in PINNING_INTERFACES:
            return f"an interface of type {device.net_type}"
    return None


def pool_cells_mib(xml: str) -> tuple[int, ...]:
    """Return the MiB of a domain's CPU-less cells, in order."""
    return tuple(_mib(cell) for cell in _pool_cells(etree.fromstring(xml)))


def cell_pins(backings: Sequence[Backing], local_nodes: Collection[int]) -> dict[str, set[int]]:
    """Return which host nodes each guest cell is bound to, in the form of Nova's LibvirtLiveMigrateNUMAInfo."""
    return {str(node.cellid): set(node.nodeset) for node in memnodes(backings, local_nodes)}


def rebind(xml: str, pins: Mapping[str, Collection[int]]) -> str:
    """Return a domain's XML with its cells bound as another host wants it (a live migration's destination)."""
    document = etree.fromstring(xml)
    for node in document.findall("./numatune/memnode"):
        nodes = pins.get(node.get("cellid"))
        if nodes:
            node.set("nodeset", hardware.format_cpu_spec(set(nodes)))
        else:
            node.getparent().remove(node)
    return str(etree.tostring(document, encoding="unicode"))


def _pool_cells(document: Any) -> list[Any]:
    return [cell for cell in document.findall("./cpu/numa/cell") if not cell.get("cpus")]


def _nodes_of(node: Any) -> set[int]:
    return set(hardware.parse_cpu_spec(node.get("nodeset", "")))


def _mib(cell: Any) -> int:
    factor = {"b": 1 / 1024, "bytes": 1 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1024 * 1024}[cell.get("unit", "KiB")]
    return int(int(cell.get("memory")) * factor) // KIB_PER_MIB
