"""libvirt on emulated hosts whose guests map dax devices: its domain, as our virt driver writes it, and migrations."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pondstack.rpc.wire import Grant
from pondstack_rack.wait import Deadline

from . import inner_guest
from .channel import DEADLINE_SECONDS
from .cxl_rack import PYTHON
from .guest.cxl import STATE
from .host import EmulatedHost
from .libvirt_domain import QEMU
from .mitigation_bed import GUEST

EMULATOR = "/usr/bin/qemu-pondstack"
_SHIM = """#!/bin/sh
export PYTHONPATH=/opt/code
exec {python} -m pondstack_agent.qemu.wrapper --state-dir {state} --host {host} -- "$@"
"""
_DAEMON = 'listen_tls = 0\nlisten_tcp = 1\nauth_tcp = "none"\nlisten_addr = "0.0.0.0"\n'
_DEVICES = ("null", "full", "zero", "random", "urandom", "ptmx", "kvm", "userfaultfd")
DAX = tuple(f"dax0.{number}" for number in range(8))
_DOMAIN = """
<domain type='kvm'>
  <name>{name}</name>
  <uuid>{name}</uuid>
  <memory unit='MiB'>{total}</memory>
  <vcpu>1</vcpu>
  <os>
    <type machine='pc'>hvm</type>
    <kernel>{folder}/vmlinuz</kernel>
    <initrd>{folder}/initrd</initrd>
    <cmdline>console=ttyS0 quiet panic=-1 mitigations=off audit=0 no_timer_check</cmdline>
  </os>
  <features><acpi/></features>
  <on_reboot>destroy</on_reboot>
  <cpu mode='host-passthrough' migratable='on'>
    <numa>
      <cell id='0' cpus='0' memory='{local}' unit='MiB'>
        <distances><sibling id='0' value='10'/><sibling id='1' value='20'/></distances>
      </cell>
      <cell id='1' memory='{pool}' unit='MiB' memAccess='shared'>
        <distances><sibling id='0' value='20'/><sibling id='1' value='10'/></distances>
      </cell>
    </numa>
  </cpu>
  <devices>
    <emulator>{emulator}</emulator>
    <serial type='file'><source path='{console}' append='on'/></serial>
    <memballoon model='none'/>
  </devices>
</domain>
"""


@contextmanager
def libvirt(host: EmulatedHost, devices: tuple[str, ...] = DAX) -> Iterator[None]:
    """Run a libvirt that others may migrate guests to. `devices`: of /dev, which its guests may open besides."""
    names = ", ".join(f'"/dev/{name}"' for name in (*_DEVICES, *devices))
    host.put("/etc/libvirt/qemu.conf", f"{QEMU}\ncgroup_device_acl = [{names}]\n")
    host.put("/etc/libvirt/libvirtd.conf", _DAEMON)
    host.put(EMULATOR, _SHIM.format(python=PYTHON, state=STATE, host=host.machine.name), mode=0o755)
    host.run(["sh", "-ec", "modprobe kvm_amd; mkdir -p /run/libvirt; rm -f /run/libvirt/libvirt-sock"]).check()
    libvirtd = host.start(["libvirtd", "--listen"])
    try:
        host.wait_for_path("/run/libvirt/libvirt-sock")
        yield
    finally:
        libvirtd.kill()


class MovingDomain:
    """A guest that verifies what it has in its slices for ever, on any of the hosts."""

    def __init__(self, grant: Grant, local_mib: int) -> None:
        self.name, self._local_mib = grant.consumer_uuid, local_mib
        self._pool_mib = sum(extent.count for extent in grant.extents) * grant.slice_mib
        self._console = f"/var/log/{self.name}.log"

    def create(self, host: EmulatedHost) -> str:
        """Start it; returns what libvirt says against it, "" for nothing."""
        xml = _DOMAIN.format(
            name=self.name,
            total=self._local_mib + self._pool_mib,
            local=self._local_mib,
            pool=self._pool_mib,
            folder=GUEST,
            emulator=EMULATOR,
            console=self._console,
        )
        host.put(f"/tmp/{self.name}.xml", xml)
        done = host.run(["virsh", "-q", "create", f"/tmp/{self.name}.xml"], timeout=DEADLINE_SECONDS)
        return str(done.stderr) if done.returncode else ""

    def log(self, host: EmulatedHost) -> str:
        """Return what its head and QEMU have said."""
        return str(host.get(f"/var/log/libvirt/qemu/{self.name}.log").decode(errors="replace"))

    def monitor(self, host: EmulatedHost, command: str, **arguments: Any) -> None:
        """Ask its QEMU, as nova-compute does."""
        words = json.dumps({"execute": command, "arguments": arguments})
        answer = json.loads(host.run(["virsh", "-q", "qemu-monitor-command", self.name, words]).check().stdout)
        assert "error" not in answer, answer

    def state(self, host: EmulatedHost) -> str:
        """Return what libvirt says that it does."""
        return str(host.run(["virsh", "-q", "domstate", self.name]).check().stdout).strip()

    def virsh(self, host: EmulatedHost, *words: str) -> None:
        """Do something by libvirt's own client."""
        host.run(["virsh", "-q", *words], timeout=DEADLINE_SECONDS).check()

    def looks(self, host: EmulatedHost, more: int) -> None:
        """Wait until it has looked at all of its slices so often here from now on; nothing may be wrong in them."""
        had, deadline = len(self._passes(host)), Deadline(DEADLINE_SECONDS)
        while len(found := self._passes(host)) < had + more:
            assert not deadline.over, self.log(host)
            deadline.pause(0.5)
        assert sum(wrong for wrong, _ in found) == 0

    def _passes(self, host: EmulatedHost) -> list[tuple[int, int]]:
        if host.run(["test", "-e", self._console]).returncode:
            return []
        return inner_guest.passes(host.get(self._console).decode(errors="replace"))
