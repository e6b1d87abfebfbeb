"""Who zeroes a slice between two owners: whether a host may have slices of a device. Pure; in doubt it may not."""

from enum import StrEnum


class DeviceMemory(StrEnum):
    """What the memory of a pool device is, and hence what its driver at the controller can zero."""

    FILE = "file"
    """A file that hosts map: the driver zeroes it."""
    CXL = "cxl"
    """A file that the hosts' CXL devices are made of: the driver zeroes it."""
    ELSEWHERE = "elsewhere"
    """Real CXL memory beside a permission table: the driver zeroes nothing."""


class HostZeroing(StrEnum):
    """What a host's driver does with the slices of a pool before it gives them back."""

    HOST = "host"
    """It zeroes and verifies them itself."""
    FILE = "file"
    """It maps the device's file, and leaves zeroing to the device."""
    DEVICE = "device"
    """It reaches them as a CXL device, and leaves zeroing to it."""


def refusal(memory: str | None, host: str | None) -> str:
    """Return why a host may have nothing of a pool, '' when it may.

    `memory`: of the device, None when an older controller tells of it; `host`: what the agent reports, None of an older
    agent, which is taken to leave zeroing to the device.
    """
    if memory is None or host == HostZeroing.HOST:
        return ""
    if memory == DeviceMemory.CXL or (memory == DeviceMemory.FILE and host in (HostZeroing.FILE, None)):
        return ""
    if memory == DeviceMemory.FILE:
        return (
            "its device zeroes a file, the host reaches CXL memory and does not zero it; set [cxl] sanitize = host "
            "(emulated CXL devices that are made of that file: `pondstack-manage device create --memory cxl`)"
        )
    return "its device cannot zero memory, and the host does not; set [cxl] sanitize = host, with an agent that tells"
