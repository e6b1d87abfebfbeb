"""Slices as dax devices: slice i of a pool is bytes i * size to (i + 1) * size of the region, whatever else is there.

A slice that becomes memory of this host's kernel goes absent -> ranged -> devdax (looked at) -> kmem -> online, and
back. Slices that a guest maps itself are one device for each extent, and stay at devdax. Each verb starts from whatever
it finds, so that one which was killed at any step is repeated. A device without a range is nobody's: the next slice
takes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from oslo_log import log

from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent
from pondstack_agent.drivers.base import SliceNotZero
from pondstack_agent.drivers.cxl import privileged
from pondstack_agent.drivers.cxl.memory import Blocks
from pondstack_agent.drivers.cxl.preflight import Failure, failed
from pondstack_agent.drivers.cxl.region import Region
from pondstack_agent.drivers.cxl.sysfs import Sysfs
from pondstack_agent.host import mapped_files
from pondstack_rdma import cpu_cache

LOG = log.getLogger(__name__)

DEVDAX, KMEM = "device_dax", "kmem"
_DRIVERS = "bus/dax/drivers"
Step = Callable[[str], None]
"""Told before each change of the kernel; tests end the process there."""


@dataclass(frozen=True, slots=True)
class DaxDevice:
    """A dax device as the kernel has it; `start` is physical, None without a range."""

    name: str
    size_bytes: int
    start: int | None
    driver: str


@dataclass(frozen=True, slots=True)
class FirstUse:
    """How an allocation uses slices first. `zero`: this host zeroes those that are not zero; otherwise it refuses."""

    pool_name: str
    zero: bool


class Slices:
    """The dax devices of one region."""

    def __init__(self, sysfs: Sysfs, blocks: Blocks, region: Region, step: Step) -> None:
        self._sysfs, self._blocks, self._region, self._step = sysfs, blocks, region, step

    def devices(self) -> list[DaxDevice]:
        """Return all dax devices of the region."""
        names = (name for name in self._sysfs.names(self._region.dax) if name.startswith("dax") and "." in name)
        return [self._device(name) for name in names]

    def find(self, extent: Extent, slice_bytes: int) -> DaxDevice | None:
        """Return the device over exactly these slices."""
        place = self._start(extent.start, slice_bytes), extent.count * slice_bytes
        return next((item for item in self.devices() if (item.start, item.size_bytes) == place), None)

    def by_index(self, slice_bytes: int | None) -> dict[int, DaxDevice]:
        """Return by slice index the devices over slices of a size; one may be over several.

        None: each device is a slice of its own size.
        """
        found: dict[int, DaxDevice] = {}
        for item in self.devices():
            if item.start is not None:
                size = slice_bytes or item.size_bytes
                index, beside = divmod(item.start - self._region.start, size)
                count, rest = divmod(item.size_bytes, size)
                if not beside and not rest:
                    found |= dict.fromkeys(range(index, index + count), item)
        return found

    def check_memory(self, slice_bytes: int) -> None:
        """Raise HostUnusable unless slices can be memory of this host's kernel: sizes, policy."""
        block = self._blocks.size_bytes
        if slice_bytes % block or self._region.start % block:
            sizes = {"slice": slice_bytes >> 20, "block": block >> 20, "start": self._region.start}
            raise failed(Failure.BLOCK_SIZE, **sizes)
        policy = self._blocks.policy()
        if policy != "offline":
            raise failed(Failure.AUTO_ONLINE, policy=policy)

    def check(self, extents: Iterable[Extent], slice_bytes: int) -> None:
        """Raise HostUnusable unless there can be a device over each extent: within the region, nobody else's there."""
        devices = self.devices()
        for extent in extents:
            if (extent.start + extent.count) * slice_bytes > self._region.size_bytes:
                raise DeviceFailed(f"{self._region.name} ends before slice {extent.indexes[-1]}; audit the ledger")
            start = self._start(extent.start, slice_bytes)
            for item in devices:
                self._check_overlap(item, start, extent.count * slice_bytes)

    def expose(
        self, extent: Extent, slice_bytes: int, *, first_use: FirstUse | None, dirty: Callable[[], None]
    ) -> DaxDevice:
        """Have slices as one device that a guest maps; raises SliceNotZero, HostUnusable, DeviceFailed.

        `first_use`, `dirty`: as for `up`. None also for what is handed over, which nobody looks at: this host's caches
        would have it from before its guest stops elsewhere.
        """
        device = self.open(extent, slice_bytes)
        if first_use is not None:
            self._prove_zero(device, extent.start, slice_bytes, first_use)
        self._step("dirty")
        dirty()
        self._as_devdax(device)
        return self._device(device.name)

    def write_back(self, device: DaxDevice) -> None:
        """Have this host's CPU caches hold nothing of a device any more, and memory what was written; DeviceFailed."""
        self._as_devdax(device)
        self._step("write back")
        trouble = privileged.write_back(f"/dev/{device.name}", device.size_bytes)
        if trouble:
            raise DeviceFailed(f"CPU caches over {device.name} are not written back: {trouble}")

    def align_bytes(self, device: DaxDevice) -> int:
        """Return what each mapping of a device is a multiple of."""
        return self._sysfs.number(f"{self._path(device)}/align")

    def up(self, index: int, slice_bytes: int, *, first_use: FirstUse | None, dirty: Callable[[], None]) -> DaxDevice:
        """Bring a slice online; raises SliceNotZero, HostUnusable, DeviceFailed.

        Before its first use by an allocation (None: it had been online for it) it is proved to be zero. `dirty` writes
        down, durably, that it may not be from now on: it is called before the kernel can put anything there.
        """
        device = self.open(Extent(index, 1), slice_bytes)
        self._blocks.node(self._sysfs.number(f"{self._path(device)}/target_node"), device.name)
        if device.driver != KMEM:
            if first_use is not None:
                self._prove_zero(device, index, slice_bytes, first_use)
            self._unbind(device)
            self._full_size(device)
            self._step("dirty")
            dirty()
            self._step("kmem")
            self._sysfs.write(f"{_DRIVERS}/{KMEM}/bind", device.name)
        self.online(device)
        return device

    def online(self, device: DaxDevice) -> None:
        """Bring a device's memory blocks online, as movable memory."""
        blocks = self.blocks(device)
        if len(blocks) * self._blocks.size_bytes != device.size_bytes:
            raise DeviceFailed(
                f"{device.name} has {len(blocks)} memory blocks for {device.size_bytes >> 20} MiB; look at the "
                "kernel's log, and reboot the host when it says that memory is stuck"
            )
        for block in blocks:
            self._step("online")
            self._blocks.online([block], device.name, self.node(device))

    def open(self, extent: Extent, slice_bytes: int) -> DaxDevice:
        """Return the device over exactly these slices, made if it is not there; raises DeviceFailed."""
        return self.find(extent, slice_bytes) or self._create(extent, slice_bytes)

    def retire(self, device: DaxDevice) -> None:
        """Have no process of this host write to a character device any more, nor its caches later; raises DeviceFailed.

        It takes as long as the device is large, and changes nothing for other devices.
        """
        if mapped_files.is_mapped(f"/dev/{device.name}"):
            raise DeviceFailed(f"a process maps /dev/{device.name}; find it in /proc/*/maps, end it, detach again")
        self.write_back(device)
        self._unbind(device)

    def down(self, device: DaxDevice, *, zero: bool = False, written: bool = False) -> None:
        """Give a device back whose blocks are offline, and that nobody maps; raises DeviceFailed.

        `zero`: write over it first, whatever driver a former life that was killed left it with, and verify each byte.
        `written`: it may have content, which has to leave this host's caches: later it would go over the next owner's.
        What a guest has mapped is written back in any case, before: afterwards nobody here can write to it.
        """
        device = self._device(device.name)
        if device.driver == DEVDAX:
            self.retire(device)
        if device.driver == KMEM:
            online = [block for block in self.blocks(device) if self._blocks.is_online(block)]
            if online:  # The kernel would keep such memory until the next boot.
                raise DeviceFailed(f"{device.name} still has {len(online)} memory blocks online; detach again")
        self._unbind(device)
        if self.blocks(device):
            raise DeviceFailed(f"the kernel keeps memory of {device.name}; look at its log, drain and reboot the host")
        if zero and device.size_bytes:
            self._zero(device)
            self._unbind(device)
        elif written and device.size_bytes and device.driver != DEVDAX and cpu_cache.INSTRUCTION:
            self.write_back(device)
            self._unbind(device)
        self._drop(device)

    def blocks(self, device: DaxDevice) -> list[str]:
        """Return the memory blocks of a device that exist."""
        return self._blocks.of(device.start, device.size_bytes) if device.start is not None else []

    def is_online(self, device: DaxDevice) -> bool:
        """Tell whether all of a device is memory in use."""
        blocks = self.blocks(device)
        return bool(blocks) and all(self._blocks.is_online(block) for block in blocks)

    def node(self, device: DaxDevice) -> int:
        """Return the host's node of a device."""
        return self._sysfs.number(f"{self._path(device)}/target_node")

    def clear(self) -> None:
        """Remove the device over all of the region that the kernel starts with; raises HostUnusable if it is used."""
        for item in self.devices():
            if (item.start, item.size_bytes) == (self._region.start, self._region.size_bytes) and not item.driver:
                self._drop(item)

    def _prove_zero(self, device: DaxDevice, first: int, slice_bytes: int, first_use: FirstUse) -> None:
        """Read every byte of slices, from the `first` on; if one is not zero, all are zeroed here, or it is refused."""
        self._as_devdax(device)
        self._step("look")
        found = self._written(device)
        if found is None:
            return
        index, offset = first + found // slice_bytes, found % slice_bytes
        what = f"slice {index} of pool {first_use.pool_name} is not zero before its first use (offset {offset})"
        if not first_use.zero:
            raise SliceNotZero(f"{what}: it was not sanitised, and is quarantined; audit it", [index])
        LOG.warning("%s: its last host ended before it had zeroed it; this host does so now", what)
        try:
            self._zero(device)
        except DeviceFailed as error:
            raise SliceNotZero(f"{what}, and cannot be zeroed ({error.message}); replace its device", [index]) from None

    def _zero(self, device: DaxDevice) -> None:
        self._as_devdax(device)
        self._step("zero")
        privileged.zero(f"/dev/{device.name}", device.size_bytes)
        if cpu_cache.INSTRUCTION:
            self.write_back(device)  # zeros that come late would go over what the next owner has written
        self._step("verify")
        offset = self._written(device)
        if offset is not None:
            raise DeviceFailed(f"{device.name} is not zero after zeroing (offset {offset}); replace its device")

    def _written(self, device: DaxDevice) -> int | None:
        return privileged.first_written_byte(f"/dev/{device.name}", device.size_bytes)

    def _create(self, extent: Extent, slice_bytes: int) -> DaxDevice:
        free = [item for item in self.devices() if not item.size_bytes and not item.driver]
        if free:
            name = free[0].name
        else:
            self._step("create")
            self._sysfs.write(f"{self._region.dax}/dax_region/create", "1")
            name = self._sysfs.text(f"{self._region.dax}/dax_region/create")
        start, size = self._start(extent.start, slice_bytes), extent.count * slice_bytes
        self._step("range")
        self._sysfs.write(f"{self._region.dax}/{name}/mapping", f"{start:x}-{start + size - 1:x}")
        device = self._device(name)
        if (device.start, device.size_bytes) != (start, size):
            raise DeviceFailed(
                f"the kernel gave {name} another range than slice {extent.start}; look at the kernel's log"
            )
        return device

    def _drop(self, device: DaxDevice) -> None:
        if device.size_bytes:
            self._step("shrink")
            self._sysfs.write(f"{self._path(device)}/size", "0")
        if not device.name.endswith(".0"):  # The first one of a region stays for good.
            self._step("delete")
            self._sysfs.write(f"{self._region.dax}/dax_region/delete", device.name)

    def _as_devdax(self, device: DaxDevice) -> None:
        if self._sysfs.driver(self._path(device)) != DEVDAX:
            self._step("devdax")
            self._sysfs.write(f"{_DRIVERS}/{DEVDAX}/new_id", device.name)
            self._sysfs.write(f"{_DRIVERS}/{DEVDAX}/remove_id", device.name)
            if self._sysfs.driver(self._path(device)) != DEVDAX:
                raise DeviceFailed(f"{device.name} did not become a character device; look at the kernel's log")

    def _unbind(self, device: DaxDevice) -> None:
        driver = self._sysfs.driver(self._path(device))
        if driver:
            self._step("unbind")
            self._sysfs.write(f"{_DRIVERS}/{driver}/unbind", device.name)

    def _full_size(self, device: DaxDevice) -> None:
        """Have the descriptions of its pages in local memory: in its own they would make each slice 1.6 % smaller."""
        path = f"{self._path(device)}/memmap_on_memory"
        if self._sysfs.exists(path) and self._sysfs.text(path) != "0":
            self._sysfs.write(path, "0")

    def _check_overlap(self, item: DaxDevice, start: int, size_bytes: int) -> None:
        if item.start is None or (item.start, item.size_bytes) == (start, size_bytes):
            return
        if item.start < start + size_bytes and start < item.start + item.size_bytes:
            failure = Failure.SYSTEM_RAM if item.driver == KMEM else Failure.FOREIGN_DAX
            size, driver = item.size_bytes >> 20, item.driver or "none"
            raise failed(failure, device=item.name, start=item.start, size=size, driver=driver)

    def _start(self, index: int, slice_bytes: int) -> int:
        return self._region.start + index * slice_bytes

    def _path(self, device: DaxDevice) -> str:
        return f"{self._region.dax}/{device.name}"

    def _device(self, name: str) -> DaxDevice:
        path = f"{self._region.dax}/{name}"
        size = self._sysfs.number(f"{path}/size")
        start = self._sysfs.number(f"{path}/mapping0/start") if size else None
        return DaxDevice(name, size, start, self._sysfs.driver(path))
