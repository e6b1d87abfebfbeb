"""Two emulated hosts over one CXL device whose controller side is an emulated device's folder: a multi-headed pool."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pondstack.devices.emulated import EmulatedDevice, create_device
from pondstack.domain.zeroing import DeviceMemory
from pondstack.rpc.wire import Backing, Grant

from .channel import Remote
from .conftest import Hardware
from .host import EmulatedHost
from .machine import Machine

TABLE = "/mnt/device"
PYTHON = "/opt/pondstack/bin/python"
SERIAL = "contract"


class RemoteDriver:
    """A HostPoolDriver whose object lives in a host."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote

    def __getattr__(self, name: str) -> Any:
        """Return a method that runs in the host."""
        return lambda *arguments: self.remote.call(name, list(arguments))


class CxlRack:
    """The hosts, by the names that the permission table has, their drivers and the device."""

    def __init__(self, hosts: Sequence[EmulatedHost], folder: Path) -> None:
        self.folder, self.device = folder, EmulatedDevice(folder)
        self.hosts = {host.machine.name: host for host in hosts}
        self._remotes: dict[str, Remote] = {}

    def remote(self, name: str) -> Remote:
        """Return the driver's process of a host, started when there is none."""
        if name not in self._remotes:
            self._remotes[name] = self.hosts[name].remote(
                "tests.hardware.guest.cxl:Driver", host=name, serial=SERIAL, table=TABLE
            )
        return self._remotes[name]

    def open(self, name: str) -> Any:
        """Make a new driver object in a host."""
        remote = self.remote(name)
        remote.open()
        return RemoteDriver(remote)

    def reboot(self, name: str) -> None:
        """Take a host's power away and give it back; what it had online is gone, its disk is not."""
        self.hosts[name].run(["sync"]).check()
        self._remotes.pop(name, None)
        self.hosts[name].reboot()

    def lose_state(self, name: str) -> None:
        """Remove the state folder of a host's agent."""
        self.remote(name).lose_state()

    @contextmanager
    def guest(self, grant: Grant, backing: Backing, text: str) -> Iterator[bytes]:
        """Run a process of the grant's host on a backing: bound to the pool's node, or with a dax device mapped."""
        name = "mapper" if backing.path else "tenant"
        command = [PYTHON, "-m", f"tests.hardware.guest.{name}", "-uuid", grant.consumer_uuid]
        details = [backing.path or str(backing.host_node), str(backing.size_mib), text]
        started = self.hosts[grant.host].start([*command, *details], env={"PYTHONPATH": "/opt/code"})
        try:
            output = started.wait_for("found ")
            yield bytes.fromhex(output.partition("found ")[2].split()[0])
        finally:
            started.write(close=True)
            started.wait()

    def heir_of(self, own: Grant) -> Grant:
        """Have the device let host2 in as the heir of host1; returns its grant, as the controller does for a move."""
        heir = replace(own, allocation_uuid=f"heir-of-{own.allocation_uuid}", host="host2", handed=True)
        owner = own.allocation_uuid
        self.device.add_heir("host2", own.extents, tag=heir.allocation_uuid, owner=owner, epoch=1)
        return heir

    def clean(self) -> None:
        """Bring hosts and device back to where they were: nothing attached, nothing granted, all zero."""
        for name in self._remotes:
            driver = self.open(name)
            for item in driver.attached():
                driver.detach(item.allocation_uuid)
            assert driver.attached() == ()
        for index, entry in self.device.permissions().items():
            self.device.revoke([index], tag=entry.tag, epoch=1)
        for index in range(self.device.info().slices_total):
            self.device.sanitize(index, epoch=1)


@contextmanager
def cxl_rack(hardware: Hardware, folder: Path, names: Sequence[str], slices: int, slice_mib: int) -> Iterator[CxlRack]:
    """Boot hosts over one new device, made in `folder`."""
    make_device(folder, slices, slice_mib)
    machines = [Machine(name, (folder / "memory",), shares={TABLE: folder}) for name in names]
    with hardware.hosts(*machines) as hosts:
        yield CxlRack(hosts, folder)


def make_device(folder: Path, slices: int, slice_mib: int) -> EmulatedDevice:
    """Make the device's folder."""
    return create_device(folder, slices, slice_mib=slice_mib, serial=SERIAL, memory=DeviceMemory.CXL)
