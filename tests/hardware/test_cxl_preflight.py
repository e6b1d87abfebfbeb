"""Each pre-flight error, provoked in a real kernel; its text says what to do, and after doing it the attach works."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from pondstack.devices import pool_uuid
from pondstack.domain.errors import DeviceFailed, HostUnusable
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant

from .conftest import Hardware
from .cxl_rack import SERIAL, TABLE, CxlRack, cxl_rack
from .host import EmulatedHost

pytestmark = pytest.mark.hardware
HOST, SLICES, SLICE_MIB = "host1", 4, 128
SIZE = SLICE_MIB << 20
POLICY = "/sys/devices/system/memory/auto_online_blocks"


@pytest.fixture(scope="module")
def rack(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CxlRack]:
    """One host with one device, without the region that the driver makes."""
    folder = tmp_path_factory.mktemp("pool") / "device"
    with cxl_rack(hardware, folder, (HOST,), SLICES, SLICE_MIB) as rack:
        yield rack


@pytest.fixture
def host(rack: CxlRack) -> EmulatedHost:
    """The host."""
    return rack.hosts[HOST]


@pytest.fixture
def grant(rack: CxlRack) -> Iterator[Grant]:
    """Slices 1 and 2, granted to the host."""
    extents = (Extent(1, 2),)
    rack.device.grant(HOST, extents, tag="a", epoch=1)
    yield Grant("a", "vm-of-a", HOST, pool_uuid(SERIAL), "pool0", {}, SLICE_MIB, extents, 1)
    rack.clean()


def shell(host: EmulatedHost, script: str) -> str:
    """Run a script in the host."""
    return host.run(["sh", "-ec", script]).check().stdout


def attaches(rack: CxlRack, grant: Grant) -> None:
    """Attach and detach: nothing is in the way any more."""
    driver = rack.open(HOST)
    assert [backing.size_mib for backing in driver.attach(grant)] == [2 * SLICE_MIB]
    assert driver.detach(grant.allocation_uuid)


def meminfo(host: EmulatedHost, node: int, name: str) -> int:
    """Return a figure of a node in MiB."""
    path = f"/sys/devices/system/node/node{node}/meminfo"
    return int(shell(host, f"awk '/{name}:/ {{print $4}}' {path}")) // 1024


@contextmanager
def refused(rack: CxlRack, grant: Grant, code: str, *parts: str) -> Iterator[None]:
    """Expect an attach to be refused with a text that has all parts, and to leave nothing behind."""
    driver = rack.open(HOST)
    with pytest.raises(HostUnusable) as caught:
        driver.attach(grant)
    assert f"[pre-flight: {code}]" in caught.value.message
    assert [part for part in parts if part not in caught.value.message] == [], caught.value.message
    assert driver.attached() == ()
    yield


def test_a_missing_module(rack: CxlRack, host: EmulatedHost, grant: Grant) -> None:
    """First of all: a module that was loaded does not go away."""
    host.put("/etc/modprobe.d/wrong.conf", "install kmem /bin/false\n")
    with refused(rack, grant, "missing_module", "kmem cannot be loaded", "CONFIG_DEV_DAX_KMEM", "blacklist"):
        assert host.get("/sys/bus/dax/drivers_autoprobe").strip() == b"1"
        shell(host, "rm /etc/modprobe.d/wrong.conf")


def test_a_region_of_somebody_else(rack: CxlRack, host: EmulatedHost, grant: Grant) -> None:
    for region in shell(host, "ls /sys/bus/cxl/devices").split():
        if region.startswith("region"):
            shell(host, f"cxl disable-region -f {region}; cxl destroy-region -f {region}")
    shell(host, "cxl create-region -m -t ram -d decoder0.0 -w 1 -s 256M mem0")
    with refused(rack, grant, "foreign_region", "1 way(s), 256 MiB", "512 MiB", "cxl destroy-region region"):
        shell(host, "cxl disable-region -f region0; cxl destroy-region -f region0")
    attaches(rack, grant)


def test_kmem_that_is_loaded_first_does_not_get_the_pool(rack: CxlRack, host: EmulatedHost, grant: Grant) -> None:
    """Modules are loaded from the test before; the kernel's first device over a new region must not become memory."""
    shell(host, "cxl disable-region -f region0; cxl destroy-region -f region0; lsmod | grep -q kmem")
    attaches(rack, grant)
    assert rack.remote(HOST).audit()["slices"] == []


def test_memory_that_comes_online_by_itself(rack: CxlRack, host: EmulatedHost, grant: Grant) -> None:
    with ExitStack() as stack:
        stack.callback(shell, host, f"echo offline > {POLICY}")
        shell(host, f"echo online > {POLICY}")
        with refused(rack, grant, "auto_online", "memhp_default_state=offline", "udev", POLICY):
            pass
    attaches(rack, grant)


def test_a_device_that_is_system_memory_already(rack: CxlRack, host: EmulatedHost, grant: Grant) -> None:
    # Half of slice 0 and slice 1: it cannot be taken for one of ours.
    shell(host, "daxctl create-device -r region0 -s 256M")
    name = shell(host, "cat /sys/bus/cxl/devices/region0/dax_region0/dax_region/create").strip()
    shell(host, f"daxctl reconfigure-device --mode=system-ram --no-online {name}")
    with refused(rack, grant, "system_ram", f"{name} (0x", "256 MiB", f"--mode=devdax --force {name}"):
        pass
    shell(host, f"daxctl reconfigure-device --mode=devdax --force {name}")
    with refused(rack, grant, "foreign_dax", "driver device_dax", f"daxctl destroy-device --force {name}"):
        shell(host, f"daxctl disable-device {name}; daxctl destroy-device --force {name}")
    attaches(rack, grant)


def test_memory_in_zone_normal(rack: CxlRack, host: EmulatedHost, grant: Grant) -> None:
    """Somebody (a udev rule) brings a block online between the kernel's making it and the driver's."""
    assert not rack.remote(HOST).call_killed("attach", [grant], "online")
    [[first, _last, driver, online, _all]] = rack.remote(HOST).audit()["slices"]
    assert (driver, online) == ("kmem", 0)
    block = first // SIZE
    shell(host, f"echo online_kernel > /sys/devices/system/memory/memory{block}/state")
    with refused(rack, grant, "zone_normal", f"memory{block} of dax0.", "zone Normal", "reboot it with memhp_default"):
        pass
    attaches(rack, grant)


def test_the_hosts_own_processes_stay_off_the_pool(rack: CxlRack, host: EmulatedHost, grant: Grant) -> None:
    """Read more than local memory holds: page cache lands on the pool, but none of what the agent confined."""
    group = "/sys/fs/cgroup/system.slice"
    shell(host, f"echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control; mkdir {group}")
    with ExitStack() as stack:
        stack.callback(shell, host, f"rmdir {group}")
        rack.remote(HOST).make_partition(False)
        with refused(
            rack, grant, "system_anywhere", "system.slice", "pondstack-partition make", "AllowedMemoryNodes=0"
        ):
            assert host.get(f"{group}/cpuset.mems").strip() == b""
        rack.remote(HOST).make_partition(True)
        driver = rack.open(HOST)
        node = driver.attach(grant)[0].host_node

        def cached_on_pool(cgroup: str) -> int:
            shell(host, "sync; echo 3 > /proc/sys/vm/drop_caches")
            more = meminfo(host, 0, "MemFree") + 256
            # A file with nothing in it: the kernel caches its pages all the same, and unlike a disk's they are movable.
            shell(host, f"truncate -s {more}M /var/tmp/large")
            shell(host, f"echo $$ > {cgroup}/cgroup.procs; dd if=/var/tmp/large of=/dev/null bs=1M status=none")
            return meminfo(host, node, "FilePages")

        assert host.get(f"{group}/cpuset.mems").strip() == b"0"
        assert cached_on_pool(group) == 0
        assert cached_on_pool("/sys/fs/cgroup") > 0
        assert driver.detach(grant.allocation_uuid)
        assert rack.remote(HOST).partition("undo") == 0
        assert host.get(f"{group}/cpuset.mems").strip() == b""
        assert rack.remote(HOST).partition("show") == 1


def test_slices_that_are_no_memory_blocks(rack: CxlRack, grant: Grant) -> None:
    small = Grant("a", "vm-of-a", HOST, grant.pool_uuid, "pool0", {}, 64, grant.extents, 1)
    with refused(rack, small, "block_size", "64 MiB", "blocks of 128 MiB", "multiple"):
        pass


def test_a_device_that_is_not_there(host: EmulatedHost, grant: Grant) -> None:
    driver = host.remote("tests.hardware.guest.cxl:Driver", host=HOST, serial=SERIAL, table=TABLE, number=9)
    assert driver.call("pools", []) == ()
    with pytest.raises(DeviceFailed, match=r"does not reach pool .* serial number 0x9.*cxl list -M.*no_device"):
        driver.call("attach", [grant])
