"""The driver `dcd` over the rig: a device folder whose heads are QEMU's, and hosts that do as a test has them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pondstack.devices.dcd import DcdDevice
from pondstack.devices.emulated import create_device
from pondstack.devices.fabric import ByteRange, ExtentState
from pondstack.devices.heads import read_heads, set_head
from pondstack.devices.qmp_fabric import QmpFabric

from .dcd_rig import DcdRig

SLICE_MIB = 2
"""QEMU's block size: no slice is smaller."""

SLICE = SLICE_MIB * 2**20


class AnsweringFabric(QmpFabric):
    """QEMU's monitors, with hosts that answer at once what they are told; `keeping` ones give nothing back."""

    def __init__(self, rig: DcdRig, folder: Path) -> None:
        super().__init__(read_heads(folder), answer_seconds=20.0)
        self.rig = rig
        self.silent: set[str] = set()
        self.keeping = False

    def add(self, host: str, ranges: Sequence[ByteRange], *, tag: str) -> None:
        super().add(host, ranges, tag=tag)
        if host not in self.silent:
            self.rig.hosts[host].answer()

    def release(self, host: str, ranges: Sequence[ByteRange]) -> None:
        super().release(host, ranges)
        if not self.keeping and host not in self.silent:
            self.rig.hosts[host].answer()


class Dcd:
    """One device folder over the rig's memory."""

    def __init__(self, rig: DcdRig, folder: Path, slices: int) -> None:
        self.rig, self.path = rig, folder
        create_device(folder, slices, slice_mib=SLICE_MIB, serial="contract")
        (folder / "memory").unlink()
        (folder / "memory").symlink_to(rig.memory)
        for name in rig.hosts:
            set_head(folder, name, rig.head(name))
        self.fabric = AnsweringFabric(rig, folder)
        self.device = self.open()

    def open(self) -> DcdDevice:
        """Return the device as another controller has it."""
        return DcdDevice(self.path, fabric=lambda _path: self.fabric, give_back_seconds=0.0)

    def write(self, index: int, data: bytes) -> None:
        """Be the owner of a slice."""
        with self.rig.memory.open("rb+") as memory:
            memory.seek(index * SLICE)
            memory.write(data)

    def read(self, index: int) -> bytes:
        """Return the bytes of a slice."""
        with self.rig.memory.open("rb") as memory:
            memory.seek(index * SLICE)
            return memory.read(SLICE)

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Be hosts that do not give back what they are asked for; later they do as they were told."""
        self.fabric.keeping = True
        yield
        self.fabric.keeping = False

    def states(self, host: str, *indexes: int) -> list[ExtentState]:
        """Ask QEMU what a head has of slices."""
        return self.fabric.states(host, [ByteRange(index * SLICE, SLICE) for index in indexes])
