"""The head of a guest whose slices are dax devices: what QEMU is told, and when it does not start."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.tests.drivers.cxl.hosts import Rack
from agent.tests.qemu.test_wrapper import MIB, changed_objects, guest_arguments
from pondstack.domain.errors import DeviceFailed, InUse
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from pondstack_agent.qemu import dax_device, wrapper

VM = "vm-of-a"
EXTENTS = (Extent(1, 2), Extent(4, 1))


class Bench:
    """host1 with one attachment, and the files of its kernel that the head looks at."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        rack = Rack(folder, patch, 8)
        self.device, self.state = rack.device, rack.hosts["host1"].state
        self.grant: Grant = rack.harness().grant("host1", *EXTENTS, tag="a")
        self.driver = rack.hosts["host1"].agent()
        self.root = folder / "root"
        patch.setattr(dax_device, "ROOT", self.root)
        boot = self.root / "proc/sys/kernel/random/boot_id"
        boot.parent.mkdir(parents=True)
        boot.write_text((folder / "host1/boot_id").read_text())
        self.boot = boot

    def attach(self) -> None:
        """Attach, and have the devices as files."""
        self.driver.attach(self.grant)
        (self.root / "dev").mkdir()
        for backing in self.record()["backings"]:
            (self.root / backing["path"].lstrip("/")).touch()
            folder = self.sys(backing["path"])
            (folder / "mapping0").mkdir(parents=True)
            (folder / "size").write_text(f"{backing['size_mib'] * MIB}\n")
            (folder / "mapping0/start").write_text(f"{backing['start_bytes']:#x}\n")
            (folder / "driver").symlink_to("../../drivers/device_dax")

    def record(self) -> dict[str, Any]:
        """Return what the agent has put on record."""
        found: dict[str, Any] = json.loads((self.state / "cxl/a.json").read_text())
        return found

    def sys(self, path: str) -> Path:
        """Return the kernel's folder of a device."""
        return self.root / "sys/bus/dax/devices" / path.rpartition("/")[2]

    def start(self, *more: str) -> list[str]:
        """Return what QEMU is started with."""
        return wrapper.prepare([*guest_arguments(2, 1, uuid=VM), *more], self.state, "host1")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    return Bench(tmp_path, monkeypatch)


def test_each_node_is_a_device_of_its_own(bench: Bench) -> None:
    bench.attach()
    found = changed_objects(guest_arguments(2, 1, uuid=VM), bench.start())
    paths = [backing["path"] for backing in bench.record()["backings"]]
    assert [item["mem-path"] for item in found] == paths
    assert all(item["share"] and item["align"] == MIB and "offset" not in item for item in found)
    with pytest.raises(InUse):
        bench.driver.detach("a")


def test_no_guest_starts_before_all_is_there(bench: Bench) -> None:
    """It would run on memory of the host, which nobody has claimed."""
    bench.attach()
    record = bench.record()
    del record["backings"]
    (bench.state / "cxl/a.json").write_text(json.dumps(record))
    with pytest.raises(DeviceFailed, match="not all there"):
        bench.start()


def test_no_guest_starts_once_slices_are_given_back(bench: Bench) -> None:
    bench.attach()
    assert bench.driver.begin_detach("a")
    with pytest.raises(DeviceFailed, match="not all there"):
        bench.start()


def test_devices_of_a_former_boot_are_not_believed(bench: Bench) -> None:
    bench.attach()
    bench.boot.write_text("another\n")
    with pytest.raises(DeviceFailed, match="not all there"):
        bench.start()


@pytest.mark.parametrize(("name", "text"), [("size", "1048576"), ("mapping0/start", "0x1000")])
def test_a_device_with_the_same_name_is_not_the_same(bench: Bench, name: str, text: str) -> None:
    bench.attach()
    (bench.sys(bench.record()["backings"][0]["path"]) / name).write_text(text)
    with pytest.raises(DeviceFailed, match="another device"):
        bench.start()


def test_memory_of_the_kernel_is_not_mapped(bench: Bench) -> None:
    bench.attach()
    driver = bench.sys(bench.record()["backings"][0]["path"]) / "driver"
    driver.unlink()
    driver.symlink_to("../../drivers/kmem")
    with pytest.raises(DeviceFailed, match="another device"):
        bench.start()


def test_a_device_that_is_gone(bench: Bench) -> None:
    bench.attach()
    (bench.sys(bench.record()["backings"][1]["path"]) / "size").unlink()
    with pytest.raises(DeviceFailed, match="cannot be looked at"):
        bench.start()


def test_a_libvirt_that_hides_devices_is_told_of(bench: Bench) -> None:
    bench.attach()
    (bench.root / bench.record()["backings"][0]["path"].lstrip("/")).unlink()
    with pytest.raises(DeviceFailed, match="cgroup_device_acl"):
        bench.start()


def test_without_the_permission_of_the_device_it_is_refused(bench: Bench) -> None:
    bench.attach()
    bench.device.revoke([1, 2, 4], tag="a", epoch=1)
    with pytest.raises(wrapper.Refused, match="does not let"):
        bench.start()


def test_an_heir_takes_a_guest_in_and_starts_none_anew(bench: Bench) -> None:
    """Its former host has not let go: what that has in its CPU caches would go over what a new guest writes."""
    bench.device.revoke([1, 2, 4], tag="a", epoch=1)
    bench.device.grant("host2", EXTENTS, tag="own", epoch=1)
    bench.device.add_heir("host1", EXTENTS, tag="a", owner="own", epoch=1)
    bench.grant = replace(bench.grant, handed=True)
    bench.attach()
    with pytest.raises(wrapper.Refused, match="does not let"):
        bench.start()
    assert changed_objects(guest_arguments(2, 1, uuid=VM), bench.start("-incoming", "defer")[:-2])
    bench.device.revoke([1, 2, 4], tag="own", epoch=1)
    assert bench.start()


def test_memory_that_is_a_node_passes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rack = Rack(tmp_path, monkeypatch, 8)
    rack.hosts["host1"].agent(backing="node").attach(rack.harness().grant("host1", *EXTENTS, tag="a"))
    arguments = guest_arguments(2, 1, uuid=VM)
    assert wrapper.prepare(arguments, rack.hosts["host1"].state, "host1") == arguments
