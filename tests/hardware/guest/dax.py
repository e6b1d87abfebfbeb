"""The bytes of a CXL device through devdax: what tests write to and read from, one 1 GiB dax device per slice."""

import glob
import mmap
import os
import subprocess

from pondstack_rack.wait import wait_until

_GIB = 2**30
_PROBE_SECONDS = 240.0
_ALIGN = 2 * 2**20
"""Of a mapping of devdax."""


class OpenDax:
    """One region over mem0 with a dax device per slice, made on creation."""

    def __init__(self, slices: int) -> None:
        _run("modprobe", "-a", "cxl_acpi", "cxl_pci", "cxl_mem", "cxl_port", "device_dax")
        # Drivers probe on: the region needs the whole path from the root to the device.
        _wait_for("/sys/bus/cxl/devices/endpoint*/decoder*")
        _run("cxl", "create-region", "-m", "-t", "ram", "-d", "decoder0.0", "-w", "1", "mem0")
        _run("modprobe", "dax_cxl")
        _wait_for("/sys/bus/dax/devices/dax0.0")
        # The kernel starts with one device over all of the region.
        _run("daxctl", "disable-device", "dax0.0")
        _run("daxctl", "destroy-device", "-f", "dax0.0")
        for _ in range(slices):
            _run("daxctl", "create-device", "-r", "region0", "-s", "1G")

    def write(self, offset: int, data: bytes) -> None:
        """Write at a byte offset of the device, within one slice."""
        with self._mapped(offset, len(data)) as memory:
            start = offset % _ALIGN
            memory[start : start + len(data)] = data

    def read(self, offset: int, size: int) -> bytes:
        """Read at a byte offset of the device, within one slice."""
        with self._mapped(offset, size) as memory:
            start = offset % _ALIGN
            return memory[start : start + size]

    def _mapped(self, offset: int, size: int) -> mmap.mmap:
        number, within = divmod(offset, _GIB)
        start = within - within % _ALIGN
        length = -(-(within + size - start) // _ALIGN) * _ALIGN
        descriptor = os.open(f"/dev/dax0.{number + 1}", os.O_RDWR)
        try:
            return mmap.mmap(descriptor, length, offset=start)
        finally:
            os.close(descriptor)


def _wait_for(pattern: str) -> None:
    if not wait_until(lambda: bool(glob.glob(pattern)), _PROBE_SECONDS, 0.05):
        raise TimeoutError(f"no {pattern} within {_PROBE_SECONDS} s")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
