"""Under memory pressure by others nothing of theirs lands on a slice, and the guest that has the slices lives.

As on a production host: what is no guest is in system.slice; guests are started by something with a memory policy of
local nodes, which they inherit (here numactl, there libvirt's daemon); the zNUMA guest has touched all of its slices.
"""

from collections.abc import Iterator
from pathlib import Path
from uuid import NAMESPACE_OID, uuid4, uuid5

import pytest

from pondstack.devices import pool_uuid
from pondstack.domain.errors import DeviceFailed, HostUnusable
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant

from . import inner_guest
from .conftest import Hardware
from .cxl_rack import SERIAL, TABLE, CxlRack, make_device
from .figures import Figures
from .host import EmulatedHost
from .machine import Machine

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1200)]
HOST, GUEST, SLICES, SLICE_MIB = "host1", "/mnt/guest", 4, 128
SYSTEM = "/sys/fs/cgroup/system.slice"
POLICY = ("numactl", "--membind=0")
LEFT_MIB = 160
"""What the plain guest leaves of the free local memory."""
MORE_MIB = 64
"""What is read beyond the free local memory: enough to spill, as is shown without the partition."""
KERNELS_MIB = 8
"""More than the kernel keeps of a node of 384 MiB for itself: the watermarks, and what lies freed in each CPU's lists,
which is not free and counts as used.
"""


@pytest.fixture(scope="module")
def rack(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CxlRack]:
    """One host with a device; the inner guest's files."""
    folder = tmp_path_factory.mktemp("partition")
    make_device(folder / "device", SLICES, SLICE_MIB)
    inner_guest.build(hardware.files, folder / "guest")
    shares = {TABLE: folder / "device", GUEST: folder / "guest"}
    with hardware.hosts(Machine(HOST, (folder / "device/memory",), shares=shares)) as hosts:
        yield CxlRack(hosts, Path(folder / "device"))


def grant(rack: CxlRack, tag: str, first: int, count: int) -> Grant:
    """Slices that the device lets the host have."""
    rack.device.grant(HOST, (Extent(first, count),), tag=tag, epoch=1)
    return Grant(
        tag, str(uuid5(NAMESPACE_OID, tag)), HOST, pool_uuid(SERIAL), "pool0", {}, SLICE_MIB, (Extent(first, count),), 1
    )


def shell(host: EmulatedHost, script: str) -> str:
    """Run a script in the host."""
    return host.run(["sh", "-ec", script]).check().stdout


def on_node(host: EmulatedHost, node: int, name: str) -> int:
    """Return a figure of a node in MiB."""
    return int(shell(host, f"awk '/{name}:/ {{print $4}}' /sys/devices/system/node/node{node}/meminfo")) // 1024


def read_more_than_fits(host: EmulatedHost, how: str, node: int) -> int:
    """Read a file that is larger than the free local memory; return the MiB of page cache that the pool has more."""
    shell(host, "rm -f /var/tmp/large")  # first: what is cached of it would be free room that nobody counted
    before = on_node(host, node, "FilePages")
    # A file with nothing in it: the kernel caches its pages all the same.
    shell(host, f"truncate -s {on_node(host, 0, 'MemFree') + MORE_MIB}M /var/tmp/large")
    shell(host, f"{how} dd if=/var/tmp/large of=/dev/null bs=1M status=none")
    return on_node(host, node, "FilePages") - before


def test_nothing_of_others_lands_on_a_guests_slices(rack: CxlRack, figures: Figures) -> None:
    host = rack.hosts[HOST]
    shell(host, f"echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p {SYSTEM}")
    driver = rack.open(HOST)
    mine, spare = grant(rack, "znuma", 0, 2), grant(rack, "spare", 2, 1)
    [backing] = driver.attach(mine)
    node = backing.host_node
    driver.attach(spare)  # free room on the node, as a guest that has not touched its share leaves it
    assert host.get(f"{SYSTEM}/cpuset.mems").strip() == b"0"  # the agent made the partition

    argv = inner_guest.command(
        GUEST, mine.consumer_uuid, pool_mib=backing.size_mib, node=node, distance=backing.distance, touch=True
    )
    with inner_guest.running(host, "znuma", [*POLICY, *argv], "pass 1 wrong 0 ") as znuma:
        znuma.write("p")  # it need not look while others press: that costs the host's CPUs
        znuma.wait_for("resting")
        used = on_node(host, node, "MemUsed")
        assert abs(used - backing.size_mib) <= KERNELS_MIB
        assert rack.remote(HOST).partition("show") == 0
        free = on_node(host, 0, "MemFree")
        assert free > 2 * LEFT_MIB
        argv = [*POLICY, *inner_guest.plain(str(uuid4()), size_mib=free - LEFT_MIB)]
        with inner_guest.running(host, "plain", argv, "(qemu)") as plain:
            cached = {
                "system.slice": read_more_than_fits(host, f"echo $$ >{SYSTEM}/cgroup.procs; exec", node),
                "a guest's policy": read_more_than_fits(host, f"exec {' '.join(POLICY)}", node),
            }
            assert cached == {"system.slice": 0, "a guest's policy": 0}
            assert on_node(host, node, "MemUsed") <= backing.size_mib + KERNELS_MIB
            maps = shell(host, f"cat /proc/{plain.pid}/numa_maps")
            assert f" N{node}=" not in maps
            znuma.write("l")
            looks = inner_guest.wait_for_passes(znuma)
            assert sum(wrong for wrong, _ in looks) == 0
            assert znuma.running()
            assert "oom-kill" not in shell(host, "dmesg")
            # The same without the partition, last: this host does spill, and may kill a guest for it. Not far: what
            # runs out of the emulated device's memory, such as the host's own programs, is next to standing still.
            assert read_more_than_fits(host, "", node) > 0
            figures.add("page cache on a slice, confined and by a guest's policy", 0, "MiB")


@pytest.mark.night
def test_a_plain_guest_that_ran_before_is_bound(rack: CxlRack) -> None:
    """Of a cloud that is upgraded: its memory leaves the node, and an attach is refused while it cannot be bound."""
    host = rack.hosts[HOST]
    driver = rack.open(HOST)
    late = grant(rack, "late", 3, 1)
    argv = ["python3", "-c", "import time; print('runs', flush=True); time.sleep(900)", "-uuid"]
    unbindable = host.start([*argv, "unbindable"])
    try:
        unbindable.wait_for("runs")
        with pytest.raises(HostUnusable, match=r"unbindable.*guest_anywhere"):
            driver.attach(late)
    finally:
        unbindable.kill()
    bindable = inner_guest.start_in_cgroup(host, "before", [*argv, "bindable"])
    try:
        bindable.wait_for("runs")
        driver.attach(late)
        assert host.get(f"{inner_guest.MACHINES}/before.scope/cpuset.mems").strip() == b"0"
    finally:
        inner_guest.end(bindable)


@pytest.mark.night
def test_memory_that_somebody_took_offline_is_missed(rack: CxlRack) -> None:
    """The amount is the promise: no further guest comes to a node that lacks what others were given."""
    driver = rack.open(HOST)
    held = {item.allocation_uuid for item in driver.attached()}
    assert {"spare", "late"} <= held
    driver.detach("late")
    rack.device.revoke([3], tag="late", epoch=1)
    rack.device.sanitize(3, epoch=1)
    start = sorted(first for first, *_ in rack.remote(HOST).audit()["slices"])[2]  # of the spare one
    shell(rack.hosts[HOST], f"echo offline >/sys/devices/system/memory/memory{start // (SLICE_MIB << 20)}/state")
    with pytest.raises(DeviceFailed, match=r"MiB online, and allocations hold .*spare.*daxctl online-memory"):
        driver.attach(grant(rack, "after", 3, 1))
    assert "after" not in {item.allocation_uuid for item in driver.attached()}
    rack.clean()
