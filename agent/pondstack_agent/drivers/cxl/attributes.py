"""What the privileged helper of CXL memory may touch: names of attributes, devices and blocks. Pure."""

import re

_DAX = r"dax\d+\.\d+"
_WRITABLE = re.compile(
    r"/sys/bus/dax/(?:drivers_autoprobe|drivers/[a-z_]+/(?:bind|unbind|new_id|remove_id))"
    rf"|/sys/bus/cxl/devices/region\d+/dax_region\d+/(?:dax_region/(?:create|delete)|{_DAX}/(?:mapping|size|memmap_on_memory))"
    r"|/sys/devices/system/memory/memory\d+/state"
)
_READABLE = re.compile(r"/sys/bus/(?:cxl|dax)/devices(?:/[a-z_]+[0-9.:]*)+")
DEVICES = "/sys/devices/"
"""Where the links of the buses lead."""
_BLOCK = re.compile(r"/sys/devices/system/memory/memory\d+")
_DEVICE = re.compile(rf"/dev/{_DAX}")
_DECODER = re.compile(r"decoder\d+\.\d+")
_MEMDEV = re.compile(r"mem\d+")
MODULES = frozenset({"cxl_acpi", "cxl_pci", "cxl_mem", "cxl_port", "device_dax", "dax_cxl", "kmem"})


def check_attribute(path: str) -> None:
    """Raise ValueError for what is no attribute that the driver writes."""
    _check(_WRITABLE, path)


def check_readable(path: str) -> None:
    """Raise ValueError for what is no attribute of a device of CXL or dax."""
    _check(_READABLE, path)


def check_block(path: str) -> None:
    """Raise ValueError for what is no memory block's folder."""
    _check(_BLOCK, path)


def check_device(path: str) -> None:
    """Raise ValueError for what is no dax device."""
    _check(_DEVICE, path)


def check_region(decoder: str, memdev: str) -> None:
    """Raise ValueError for words that are no root decoder and no memory device: they are a tool's arguments."""
    _check(_DECODER, decoder)
    _check(_MEMDEV, memdev)


def check_module(name: str) -> None:
    """Raise ValueError for a module that is not of CXL or dax."""
    if name not in MODULES:
        raise ValueError(f"{name} is none of this driver's modules")


def _check(pattern: re.Pattern[str], word: str) -> None:
    if not pattern.fullmatch(word):
        raise ValueError(f"{word!r} is none of this driver's business")
