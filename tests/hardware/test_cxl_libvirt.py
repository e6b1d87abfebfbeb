"""What libvirt keeps of a guest whose pages leave CXL memory: suspended before or after it, the guest is local again.

libvirt's domain is as our virt driver writes it, and none of Nova's services runs.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from pondstack.rpc.wire import Grant

from . import inner_guest
from .conftest import Hardware
from .figures import Figures
from .mitigation_bed import GUEST, SLICE_MIB, Bed, mitigation_bed

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(900)]

LOCAL_MIB = 160
QEMU = """
security_driver = "none"
stdio_handler = "file"
user = "root"
group = "root"
dynamic_ownership = 0
# This libvirt has QEMU restore from a file in a way that this QEMU refuses; what is compressed comes by a pipe.
save_image_format = "gzip"
"""
DOMAIN = """
<domain type='kvm'>
  <name>{name}</name>
  <uuid>{name}</uuid>
  <memory unit='MiB'>{total}</memory>
  <vcpu>1</vcpu>
  <numatune>
    <memnode cellid='0' mode='strict' nodeset='0'/>
    <memnode cellid='1' mode='preferred' nodeset='{node}'/>
  </numatune>
  <os>
    <type machine='pc'>hvm</type>
    <kernel>{folder}/vmlinuz</kernel>
    <initrd>{folder}/initrd</initrd>
    <cmdline>console=ttyS0 quiet panic=-1 mitigations=off audit=0</cmdline>
  </os>
  <features><acpi/></features>
  <on_reboot>destroy</on_reboot>
  <cpu mode='host-passthrough'>
    <numa>
      <cell id='0' cpus='0' memory='{local}' unit='MiB'/>
      <cell id='1' memory='{pool}' unit='MiB'/>
    </numa>
  </cpu>
  <devices>
    <serial type='file'><source path='{console}' append='on'/></serial>
    <memballoon model='none'/>
  </devices>
</domain>
"""


class Domain:
    """A guest of libvirt's with one slice, which verifies what it has in it for ever."""

    def __init__(self, bed: Bed, name: str, slice_: int) -> None:
        self.bed, self.name = bed, name
        self.grant: Grant = bed.grant(name, slice_, 1)
        self.node = bed.agent.attach(self.grant).backings[0].host_node
        self.console = f"/var/log/{name}.log"
        xml = DOMAIN.format(
            name=name,
            total=LOCAL_MIB + SLICE_MIB,
            local=LOCAL_MIB,
            pool=SLICE_MIB,
            node=self.node,
            folder=GUEST,
            console=self.console,
        )
        bed.host.put(f"/tmp/{name}.xml", xml)
        self.virsh("define", f"/tmp/{name}.xml")
        self.virsh("start", name)
        self.looks(1)

    def virsh(self, *words: str) -> str:
        """Do something with libvirt's own client."""
        return str(self.bed.host.run(["virsh", "-q", *words]).check().stdout)

    def looks(self, more: int) -> None:
        """Wait until the guest has looked at all of its memory so often from now on; nothing may be wrong in it."""
        had = len(self._passes())
        self.bed.until(lambda: len(self._passes()) >= had + more)
        assert sum(wrong for wrong, _ in self._passes()) == 0

    def words(self) -> int:
        """Return how many words it has verified."""
        return sum(words for _, words in self._passes())

    def _passes(self) -> list[tuple[int, int]]:
        if self.bed.host.run(["test", "-e", self.console]).returncode:
            return []
        return inner_guest.passes(self.bed.host.get(self.console).decode(errors="replace"))

    def bindings(self, *command: str) -> dict[str, tuple[str, str]]:
        """Return where libvirt has its cells, by a command that shows the domain."""
        found = ET.fromstring(self.virsh(*command, self.name)).iter("memnode")
        return {node.attrib["cellid"]: (node.attrib["mode"], node.attrib["nodeset"]) for node in found}

    def check_local(self) -> None:
        """Compare with the kernel: no page on the pool's node, and no policy that names it."""
        assert self.bed.agent.pages(self.name, self.node) == (0, False)


@pytest.fixture(scope="module")
def bed(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A host whose libvirt has known the pool's node from its start; another consumer keeps that online."""
    with mitigation_bed(hardware, tmp_path_factory.mktemp("libvirt")) as made:
        made.agent.attach(made.grant("base", 3, 1))
        made.host.put("/etc/libvirt/qemu.conf", QEMU)
        made.host.run(["sh", "-ec", "modprobe kvm_amd; mkdir -p /run/libvirt"]).check()
        libvirtd = made.host.start(["numactl", "--membind=0", "libvirtd"])
        made.host.wait_for_path("/run/libvirt/libvirt-sock")
        yield made
        libvirtd.kill()


POOLED, LOCAL = {"0": ("strict", "0"), "1": ("preferred", "1")}, {"0": ("strict", "0"), "1": ("strict", "0")}


def test_corrected_then_suspended_and_resumed(bed: Bed, figures: Figures) -> None:
    agent = bed.agent
    domain = Domain(bed, "2b3f44a4-55a1-4c33-8d5f-1d2a7f3c0002", 0)
    pages, bound = agent.pages(domain.name, domain.node)
    assert bound
    assert pages >= 64 << 8
    agent.begin_held("m1", domain.name)
    done = bed.ended(domain.name)
    assert (done.state, done.held, done.reason) == ("mitigated", True, "")
    assert domain.grant.allocation_uuid in agent.attached()
    assert domain.bindings("dumpxml", "--inactive") == POOLED
    assert agent.rewrite(domain.name).changed
    assert domain.bindings("dumpxml", "--inactive") == LOCAL
    assert not agent.rewrite(domain.name).changed
    agent.release(domain.name)
    bed.until(lambda: domain.grant.allocation_uuid in agent.released())
    bed.take_back(domain.grant)
    domain.check_local()
    domain.looks(2)

    domain.virsh("managedsave", domain.name)
    assert domain.bindings("managedsave-dumpxml") == POOLED, "that of the running guest, as it was started"
    done = agent.rewrite(domain.name)
    assert (done.state, done.managed_save, done.changed) == ("rewritten", True, True)
    assert domain.bindings("managedsave-dumpxml") == LOCAL
    domain.virsh("start", domain.name)
    domain.looks(2)
    domain.check_local()
    assert domain.bindings("dumpxml") == LOCAL
    figures.add("guest of libvirt, corrected, suspended, resumed: words verified", domain.words(), "words", "0 wrong")
    domain.virsh("destroy", domain.name)


def test_suspended_then_corrected_and_resumed(bed: Bed, figures: Figures) -> None:
    agent = bed.agent
    domain = Domain(bed, "2b3f44a4-55a1-4c33-8d5f-1d2a7f3c0003", 1)
    domain.virsh("managedsave", domain.name)
    done = agent.begin_held("m1", domain.name)
    assert (done.state, done.pages_total) == ("mitigated", 0)
    done = agent.rewrite(domain.name)
    assert (done.state, done.managed_save, done.changed) == ("rewritten", True, True)
    agent.release(domain.name)
    bed.until(lambda: domain.grant.allocation_uuid in agent.released())
    bed.take_back(domain.grant)
    domain.virsh("start", domain.name)
    domain.looks(2)
    domain.check_local()
    assert domain.bindings("dumpxml") == domain.bindings("dumpxml", "--inactive") == LOCAL
    figures.add("guest of libvirt, suspended, corrected, resumed: words verified", domain.words(), "words", "0 wrong")
    domain.virsh("destroy", domain.name)
