"""A guest on dax devices of a CXL device moves between two hosts that reach it, and its slices are not copied.

QEMU migrates it under KVM of the emulated hosts, started by pondstack-qemu; the guest verifies what is in its slices
again and again. Nova, libvirt and the controller are played: what they tell agents and QEMU, in their order.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from agent.tests.drivers.test_contract import Harness
from pondstack.domain.backing import DEVDAX
from pondstack.domain.errors import InUse
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from pondstack_rack.wait import Deadline

from . import inner_guest
from .channel import DEADLINE_SECONDS, Started
from .conftest import Hardware
from .cxl_rack import PYTHON, TABLE, CxlRack, make_device
from .figures import Figures
from .guest.cxl import STATE
from .libvirt_moves import MovingDomain, libvirt
from .machine import Machine, Wire
from .mitigation_bed import GUEST
from .rdma_hosts import ADDRESSES
from .test_cxl_devdax import SLICE_MIB

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1500)]
HOSTS = ("host1", "host2")
LOCAL_MIB, SLICES, PORT = 160, 4, 4444
CONSUMER, OTHER = "2b3f44a4-55a1-4c33-8d5f-1d2a7f3c0d0a", "2b3f44a4-55a1-4c33-8d5f-1d2a7f3c0d0b"
ASK = """
import json, sys
from pondstack.devices.qmp import Monitor
with Monitor("/run/guest.qmp", 120.0) as monitor:
    print(json.dumps(monitor.execute(sys.argv[1], **json.loads(sys.argv[2]))))
"""
_ADDRESS = """
modprobe virtio_net
until interface=$(grep -lix "$2" /sys/class/net/*/address); do sleep 0.1; done
interface=${interface%/address} interface=${interface##*/}
ip link set "$interface" up
ip address add "$1/24" dev "$interface"
"""


@pytest.fixture(scope="module")
def rack(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CxlRack]:
    """Two hosts over one device, on one wire, with what guests boot from."""
    folder = tmp_path_factory.mktemp("pool")
    make_device(folder / "device", SLICES, SLICE_MIB)
    inner_guest.build(hardware.files, folder / "guest")
    shares = {TABLE: folder / "device", GUEST: folder / "guest"}
    machines = [
        Machine(name, (folder / "device/memory",), shares=shares, wire=Wire(folder / "wire", listens=not number))
        for number, name in enumerate(HOSTS)
    ]
    with hardware.hosts(*machines) as hosts:
        for host, address in zip(hosts, ADDRESSES, strict=True):
            assert host.machine.wire is not None
            host.run(["sh", "-ec", _ADDRESS, "address", address, host.machine.wire.mac]).check()
        yield CxlRack(hosts, folder / "device")


class Qemu:
    """The QEMU of a guest on one host."""

    def __init__(self, rack: CxlRack, grant: Grant) -> None:
        self._host, self._grant = rack.hosts[grant.host], grant

    @contextmanager
    def running(self, *more: str) -> Iterator[Started]:
        """Have it started as by libvirt, with its console as its output; it is killed at the end."""
        pool_mib = sum(extent.count for extent in self._grant.extents) * SLICE_MIB
        backends = [
            {"qom-type": "memory-backend-ram", "id": "ram-node0", "size": LOCAL_MIB << 20},
            {"qom-type": "memory-backend-memfd", "id": "ram-node1", "size": pool_mib << 20, "share": True},
        ]
        arguments = [
            *("-uuid", self._grant.consumer_uuid, "-accel", "kvm", "-cpu", "host", "-machine", "pc", "-smp", "1"),
            *("-m", f"{LOCAL_MIB + pool_mib}M", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"),
            *(word for backend in backends for word in ("-object", json.dumps(backend))),
            *("-numa", "node,nodeid=0,cpus=0,memdev=ram-node0", "-numa", "node,nodeid=1,memdev=ram-node1"),
            *("-numa", "dist,src=0,dst=1,val=20", "-numa", "dist,src=1,dst=0,val=20"),
            *("-kernel", f"{GUEST}/vmlinuz", "-initrd", f"{GUEST}/initrd"),
            *("-append", "console=ttyS0 quiet panic=-1 mitigations=off audit=0 no_timer_check"),
            *("-qmp", "unix:/run/guest.qmp,server=on,wait=off", *more),
        ]
        head = [PYTHON, "-m", "pondstack_agent.qemu.wrapper", "--state-dir", str(STATE), "--host", self._grant.host]
        started = inner_guest.start_in_cgroup(self._host, "moves", [*head, "--", *arguments])
        try:
            yield started
        finally:
            inner_guest.end(started)

    def ask(self, command: str, /, **arguments: Any) -> Any:
        """Ask its monitor."""
        words = [PYTHON, "-c", ASK, command, json.dumps(arguments)]
        return json.loads(self._host.run(words, env={"PYTHONPATH": "/opt/code"}).check().stdout)

    def ignore_shared(self) -> None:
        """Have a migration leave shared files out."""
        self.ask("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])

    def wait_migrated(self) -> dict[str, Any]:
        """Wait for the end of its migration; returns what it sent."""
        deadline = Deadline(DEADLINE_SECONDS)
        while (found := self.ask("query-migrate"))["status"] != "completed":
            assert found["status"] not in ("failed", "cancelled"), found
            assert not deadline.over
            deadline.pause(1.0)
        return dict(found["ram"])


def test_a_guest_moves_and_its_slices_stay(rack: CxlRack, figures: Figures) -> None:
    for name in HOSTS:
        rack.remote(name).backing(DEVDAX)
    harness = Harness(rack.device, rack.open, rack.guest, rack.lose_state, SLICE_MIB)
    source, destination = rack.open("host1"), rack.open("host2")
    own = replace(harness.grant("host1", Extent(1, 2), tag="moves"), consumer_uuid=CONSUMER)
    source.attach(own)
    here = Qemu(rack, own)
    with here.running() as guest:
        boot = guest.wait_for("pass 1 wrong 0 ")
        assert "pool node: cpulist=[]" in boot
        with pytest.raises(InUse):
            source.detach("moves")
        _, pool_mib = rack.remote("host1").touched_mib(CONSUMER)
        assert 64 <= pool_mib <= 2 * SLICE_MIB, "the program fills 64 MiB"
        heir = rack.heir_of(own)
        destination.attach(heir)
        there = Qemu(rack, heir)
        with there.running("-S", "-incoming", "defer") as arrived:
            rack.hosts["host2"].wait_for_path("/run/guest.qmp")
            there.ignore_shared()
            there.ask("migrate-incoming", uri=f"tcp:{ADDRESSES[1]}:{PORT}")
            here.ignore_shared()
            here.ask("migrate", uri=f"tcp:{ADDRESSES[1]}:{PORT}")
            sent = here.wait_migrated()
            guest.kill()
            guest.wait()
            assert there.ask("query-status")["status"] in ("paused", "prelaunch")

            assert not destination.take_up(heir.allocation_uuid)
            assert source.detach("moves")
            assert rack.remote("host1").audit()["slices"] == [], "no process of the source can write any more"
            harness.take_back(own, sanitize=False)
            assert destination.take_up(heir.allocation_uuid)
            there.ask("cont")
            looks = inner_guest.wait_for_passes(arrived, 2)
            assert sum(wrong for wrong, _ in looks) == 0
            assert sent["transferred"] < LOCAL_MIB << 20
            figures.add("live migration of a guest on dax devices: sent by QEMU", sent["transferred"] / 2**20, "MiB")
            figures.add("its slices, which stayed", 2 * SLICE_MIB, "MiB", "0 wrong words")
    assert destination.detach(heir.allocation_uuid)
    harness.take_back(heir)


def test_by_libvirt_it_waits_until_its_former_host_has_let_go(rack: CxlRack) -> None:
    """As nova-compute has it: VIR_MIGRATE_PAUSED, and x-ignore-shared at both ends, at the destination by the agent."""
    for name in HOSTS:
        rack.remote(name).backing(DEVDAX)
    harness = Harness(rack.device, rack.open, rack.guest, rack.lose_state, SLICE_MIB)
    source, destination = rack.open("host1"), rack.open("host2")
    (here, there) = (rack.hosts[name] for name in HOSTS)
    own = replace(harness.grant("host1", Extent(1, 2), tag="by-libvirt"), consumer_uuid=OTHER)
    source.attach(own)
    domain = MovingDomain(own, LOCAL_MIB)
    with libvirt(here, devices=()):
        assert domain.create(here)
        assert "cgroup_device_acl" in domain.log(here)
    with libvirt(here), libvirt(there):
        assert domain.create(here) == ""
        domain.looks(here, 1)
        heir = rack.heir_of(own)
        destination.attach(heir)
        rack.remote("host2").expect(OTHER)
        capability = {"capability": "x-ignore-shared", "state": True}
        domain.monitor(here, "migrate-set-capabilities", capabilities=[capability])
        address = ADDRESSES[1]
        options = ["--live", "--suspend", "--migrateuri", f"tcp://{address}"]
        domain.virsh(here, "migrate", *options, OTHER, f"qemu+tcp://{address}/system")
        assert domain.state(there) == "paused"
        assert not destination.take_up(heir.allocation_uuid)
        assert source.detach("by-libvirt")
        harness.take_back(own, sanitize=False)
        assert destination.take_up(heir.allocation_uuid)
        domain.virsh(there, "resume", OTHER)
        domain.looks(there, 2)
        domain.virsh(there, "destroy", OTHER)
    assert destination.detach(heir.allocation_uuid)
    harness.take_back(heir)
