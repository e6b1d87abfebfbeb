"""A guest of libvirt's in an emulated host with CXL memory.

Its domain is as our virt driver writes it, and none of Nova's services runs.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager

from pondstack.rpc.wire import Grant

from . import inner_guest
from .mitigation_bed import GUEST, SLICE_MIB, Bed

LOCAL_MIB = 160
LOOK_SECONDS = 0.5
"""Between two looks at a console: each takes from the guest some of the host's time."""

QEMU = """
security_driver = "none"
stdio_handler = "file"
user = "root"
group = "root"
dynamic_ownership = 0
# This libvirt has QEMU restore from a file in a way that this QEMU refuses; what is compressed comes by a pipe.
save_image_format = "gzip"
"""
# Where libvirtd looks for gzip first. In an emulated host the real one is most of a test's time, and only its pipe is
# of use here.
PLAIN = "/opt/plain"
GZIP = "#!/bin/sh\nexec cat\n"
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
    <cmdline>console=ttyS0 quiet panic=-1 mitigations=off audit=0 no_timer_check</cmdline>
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
        bed.host.put(self.console, "")
        self.virsh("define", f"/tmp/{name}.xml")
        self.virsh("start", name)
        self.looks(1)

    def virsh(self, *words: str) -> str:
        """Do something with libvirt's own client."""
        return str(self.bed.host.run(["virsh", "-q", *words]).check().stdout)

    def looks(self, more: int) -> None:
        """Wait until the guest has looked at all of its memory so often from now on; nothing may be wrong in it."""
        had = len(self._passes())
        self.bed.until(lambda: len(self._passes()) >= had + more, LOOK_SECONDS)
        assert sum(wrong for wrong, _ in self._passes()) == 0

    def words(self) -> int:
        """Return how many words it has verified."""
        return sum(words for _, words in self._passes())

    def _passes(self) -> list[tuple[int, int]]:
        return inner_guest.passes(self.bed.host.get(self.console).decode(errors="replace"))

    def bindings(self, *command: str) -> dict[str, tuple[str, str]]:
        """Return where libvirt has its cells, by a command that shows the domain."""
        found = ET.fromstring(self.virsh(*command, self.name)).iter("memnode")
        return {node.attrib["cellid"]: (node.attrib["mode"], node.attrib["nodeset"]) for node in found}

    def check_local(self) -> None:
        """Compare with the kernel: no page on the pool's node, and no policy that names it."""
        assert self.bed.agent.pages(self.name, self.node) == (0, False)


@contextmanager
def libvirt(bed: Bed) -> Iterator[None]:
    """Run a libvirt that has known the pool's node from its start; another consumer keeps that online."""
    bed.agent.attach(bed.grant("base", 3, 1))
    bed.host.put("/etc/libvirt/qemu.conf", QEMU)
    bed.host.put(f"{PLAIN}/gzip", GZIP, mode=0o755)
    bed.host.run(["sh", "-ec", "modprobe kvm_amd; mkdir -p /run/libvirt"]).check()
    search = ["env", f"PATH={PLAIN}:/usr/sbin:/usr/bin:/sbin:/bin"]
    libvirtd = bed.host.start([*search, "numactl", "--membind=0", "libvirtd"])
    bed.host.wait_for_path("/run/libvirt/libvirt-sock")
    yield
    libvirtd.kill()
