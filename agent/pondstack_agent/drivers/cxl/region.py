"""The one region over a pool device: found, or made, and the dax region that the kernel puts on it."""

from collections.abc import Iterator
from dataclasses import dataclass

from pondstack.domain.errors import DeviceFailed
from pondstack_agent.drivers.cxl import privileged
from pondstack_agent.drivers.cxl.preflight import Failure, failed
from pondstack_agent.drivers.cxl.sysfs import Sysfs

DEVICES = "bus/cxl/devices"
AUTOPROBE = "bus/dax/drivers_autoprobe"
DISCOVERY = ("cxl_acpi", "cxl_pci", "cxl_port", "cxl_mem")
# In this order, and not probing by themselves: kmem, once loaded, takes the device that the kernel first puts over a
# whole region, and all of the pool would come to this host as system memory.
DAX = ("device_dax", "dax_cxl", "kmem")


@dataclass(frozen=True, slots=True)
class Memdev:
    """A CXL memory device, `memN`, by the serial number of its PCI function."""

    name: str
    serial: int
    ram_bytes: int


@dataclass(frozen=True, slots=True)
class Region:
    """A region: a range of host physical addresses that one or several devices answer."""

    name: str
    start: int
    size_bytes: int
    ways: int
    memdevs: tuple[str, ...]

    @property
    def dax(self) -> str:
        """The folder of the region's dax devices."""
        return f"{DEVICES}/{self.name}/dax_{self.name}"


def load(modules: tuple[str, ...]) -> None:
    """Load modules in order; raises HostUnusable."""
    for name in modules:
        trouble = privileged.load_module(name)
        if trouble:
            raise failed(Failure.MISSING_MODULE, name=name, said=trouble)


def memdevs(sysfs: Sysfs) -> Iterator[Memdev]:
    """Return the CXL memory devices of this host."""
    for name in sysfs.names(DEVICES):
        if name.startswith("mem") and sysfs.exists(f"{DEVICES}/{name}/ram/size"):
            folder = f"{DEVICES}/{name}"
            yield Memdev(name, sysfs.number(f"{folder}/serial"), sysfs.number(f"{folder}/ram/size"))


def regions(sysfs: Sysfs) -> Iterator[Region]:
    """Return the committed regions of this host."""
    for name in sysfs.names(DEVICES):
        folder = f"{DEVICES}/{name}"
        if name.startswith("region") and sysfs.number(f"{folder}/commit"):
            ways = sysfs.number(f"{folder}/interleave_ways")
            targets = tuple(_memdev_of(sysfs, sysfs.text(f"{folder}/target{n}")) for n in range(ways))
            yield Region(name, sysfs.number(f"{folder}/resource"), sysfs.number(f"{folder}/size"), ways, targets)


def find(sysfs: Sysfs, memdev: Memdev) -> Region | None:
    """Return the region over all of a device; None when there is none, or one that somebody else made."""
    found = _over(sysfs, memdev)
    return found if found and _is_whole(found, memdev) else None


def check(sysfs: Sysfs, memdev: Memdev) -> None:
    """Raise HostUnusable when somebody else made a region over a device."""
    found = _over(sysfs, memdev)
    if found and not _is_whole(found, memdev):
        raise failed(
            Failure.FOREIGN_REGION,
            region=found.name,
            memdev=memdev.name,
            ways=found.ways,
            size=found.size_bytes >> 20,
            wanted=memdev.ram_bytes >> 20,
        )


def ensure(sysfs: Sysfs, memdev: Memdev) -> Region:
    """Return the region over all of a device, made if need be, with no dax device but those of slices."""
    if not sysfs.exists(AUTOPROBE):
        load(DAX[:1])
    check(sysfs, memdev)
    found = find(sysfs, memdev)
    if found is None or not sysfs.exists(found.dax) or not sysfs.exists("bus/dax/drivers/kmem"):
        before = sysfs.text(AUTOPROBE)
        sysfs.write(AUTOPROBE, "0")
        try:
            load(DAX)
            found = found or _create(sysfs, memdev)
        finally:
            sysfs.write(AUTOPROBE, before)
    if not sysfs.exists(found.dax):
        raise DeviceFailed(f"the kernel made no dax region over {found.name}; look at the kernel's log")
    return found


def _create(sysfs: Sysfs, memdev: Memdev) -> Region:
    trouble = privileged.create_region(_root_decoder(sysfs, memdev), memdev.name)
    region = find(sysfs, memdev)
    if region is None:
        raise DeviceFailed(f"no region could be made over {memdev.name} ({trouble}); see `cxl list -vvv`")
    return region


def _root_decoder(sysfs: Sysfs, memdev: Memdev) -> str:
    """Return the window of host addresses that leads to a device, and to nothing else."""
    place = sysfs.real(f"{DEVICES}/{memdev.name}")
    for name in sysfs.names(DEVICES):
        if name.startswith("decoder") and sysfs.exists(f"{DEVICES}/{name}/create_ram_region"):
            root = sysfs.real(f"{DEVICES}/{name}").parent.name
            targets = sysfs.text(f"{DEVICES}/{name}/target_list").split(",")
            if len(targets) == 1 and place.is_relative_to(sysfs.real(f"{DEVICES}/{root}/dport{targets[0]}")):
                return name
    raise failed(Failure.NO_WINDOW, memdev=memdev.name)


def _over(sysfs: Sysfs, memdev: Memdev) -> Region | None:
    return next((region for region in regions(sysfs) if memdev.name in region.memdevs), None)


def _is_whole(region: Region, memdev: Memdev) -> bool:
    return (region.ways, region.size_bytes) == (1, memdev.ram_bytes)


def _memdev_of(sysfs: Sysfs, decoder: str) -> str:
    """Return the device behind an endpoint decoder."""
    return (sysfs.real(f"{DEVICES}/{decoder}").parent / "uport").resolve().name
