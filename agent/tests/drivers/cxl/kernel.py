"""A kernel with one CXL device, as far as the driver asks: dax devices, memory blocks, and bytes that outlive a reboot.

Stands for /sys and for pondstack_agent.drivers.cxl.privileged. Several kernels may share the bytes, as hosts do; each
has CPU caches of its own, and nothing keeps them coherent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pondstack.domain.errors import DeviceFailed
from pondstack_agent.drivers.cxl import allocations, privileged, region
from pondstack_agent.drivers.cxl.dax import DEVDAX, KMEM
from pondstack_agent.drivers.cxl.memory import MEMORY, NODES
from pondstack_agent.drivers.cxl.region import AUTOPROBE, DEVICES
from pondstack_agent.drivers.cxl.sysfs import Sysfs
from pondstack_agent.host import mapped_files, memory_users

SLICE_BYTES = 1 << 20
"""One memory block, too."""
SLICES = 4
LINE_BYTES = SLICE_BYTES // 16
"""Of the CPU caches; a real one has 64 bytes."""
START = 16 * SLICE_BYTES
CXL_SERIAL = 1
NODE = 1
DAX = f"{DEVICES}/region0/dax_region0"


@dataclass
class Dax:
    """One dax device; `start` is an offset into the region."""

    size: int = 0
    start: int = 0
    driver: str = ""


class Kernel(Sysfs):
    """One host's. `content`: the bytes of the device. `zeroed`: the slices that this host wrote zeros over."""

    def __init__(self, folder: Path, content: bytearray | None = None) -> None:
        super().__init__(folder / "sys")
        self._folder = folder
        self.content = bytearray(SLICES * SLICE_BYTES) if content is None else content
        self.zeroed: list[int] = []
        self.fails_to_zero = False
        self.there = True
        self.guests: dict[str, str] = {}
        """The devices that guests map, by consumer."""
        self._lines: dict[int, bytearray] = {}
        self._written: set[int] = set()
        self._boots = 0
        (folder / "endpoint2").mkdir(parents=True)
        (folder / "mem0").mkdir()
        (folder / "endpoint2" / "uport").symlink_to(folder / "mem0")
        self.reboot()

    def reboot(self) -> None:
        """Start anew: the kernel has no region, and no memory of the device."""
        self._boots += 1
        (self._folder / "boot_id").write_text(f"boot {self._boots}\n")
        self._region, self._last, self._created = False, 0, ""
        self._dax: dict[str, Dax] = {}
        self._online: set[str] = set()
        self._lines.clear()
        self._written.clear()
        self.guests.clear()

    def slice(self, index: int) -> bytes:
        """Return the bytes of a slice."""
        return bytes(self.content[index * SLICE_BYTES : (index + 1) * SLICE_BYTES])

    def is_memory(self, index: int) -> bool:
        """Tell whether a slice is memory of this host."""
        return f"memory{START // SLICE_BYTES + index}" in self._online

    def use(self, index: int, text: bytes) -> None:
        """Do what a guest does: write somewhere into a slice that is memory of this host.

        The bytes are in memory at once, and in the caches, from where they may go there again.
        """
        assert self.is_memory(index)
        for offset, byte in enumerate(text, index * SLICE_BYTES + 123_457):
            self._line(offset // LINE_BYTES)[offset % LINE_BYTES] = self.content[offset] = byte
            self._written.add(offset // LINE_BYTES)

    def evict(self) -> None:
        """Do what CPUs do at any time: write to memory what their caches have."""
        for number in self._written:
            self.content[number * LINE_BYTES : (number + 1) * LINE_BYTES] = self._lines[number]
        self._written.clear()

    def load(self, device: str, offset: int, size: int) -> bytes:
        """Do what a guest does: read from what it maps, as this host's caches have it."""
        at = self._character_device(device).start + offset
        found = b"".join(bytes(self._line(n)) for n in range(at // LINE_BYTES, (at + size - 1) // LINE_BYTES + 1))
        return found[at % LINE_BYTES : at % LINE_BYTES + size]

    def store(self, device: str, offset: int, data: bytes) -> None:
        """Do what a guest does: write into what it maps, and hence into this host's caches."""
        at = self._character_device(device).start + offset
        while data:
            number, within = divmod(at, LINE_BYTES)
            part = data[: LINE_BYTES - within]
            self._line(number)[within : within + len(part)] = part
            self._written.add(number)
            at, data = at + len(part), data[len(part) :]

    def _line(self, number: int) -> bytearray:
        if number not in self._lines:
            self._lines[number] = self.content[number * LINE_BYTES : (number + 1) * LINE_BYTES]
        return self._lines[number]

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Be the kernel that the driver meets, for as long as the patch lasts.

        A test that patches more does it by the same patch: what is undone in another order leaves a stand-in behind.
        """
        patch.setattr(allocations, "BOOT_ID", self._folder / "boot_id")
        patch.setattr(memory_users, "guests", lambda *_folders: dict.fromkeys(self.guests, 1))
        patch.setattr(mapped_files, "is_mapped", lambda path: path in self.guests.values())
        patch.setattr(memory_users, "pages_on_node", lambda _node: {})
        patch.setattr(region, "_root_decoder", lambda _sysfs, _memdev: "decoder0.0")
        for name in ("load_module", "create_region", "offline_blocks", "zero", "first_written_byte", "write_back"):
            patch.setattr(privileged, name, getattr(self, name))

    # pondstack_agent.drivers.cxl.privileged

    def load_module(self, _name: str) -> str:
        return ""

    def create_region(self, _decoder: str, _memdev: str) -> str:
        self._region = True
        self._dax["dax0.0"] = Dax(len(self.content))
        return ""

    def offline_blocks(self, folders: Sequence[str], _seconds: float) -> tuple[list[str], str]:
        self._online -= {folder.rpartition("/")[2] for folder in folders}
        return list(folders), ""

    def zero(self, device: str, size_bytes: int) -> None:
        dax = self._character_device(device)
        if not self.fails_to_zero:
            self.store(device, 0, bytes(size_bytes))
        self.zeroed += range(dax.start // SLICE_BYTES, (dax.start + size_bytes) // SLICE_BYTES)

    def first_written_byte(self, device: str, size_bytes: int) -> int | None:
        left = self.load(device, 0, size_bytes).lstrip(b"\0")
        return size_bytes - len(left) if left else None

    def write_back(self, device: str, size_bytes: int) -> str:
        start = self._character_device(device).start
        for number in range(start // LINE_BYTES, (start + size_bytes) // LINE_BYTES):
            line = self._lines.pop(number, None)
            if number in self._written and line is not None:
                self.content[number * LINE_BYTES : (number + 1) * LINE_BYTES] = line
            self._written.discard(number)
        return ""

    def _character_device(self, path: str) -> Dax:
        dax = self._dax[path.removeprefix("/dev/")]
        assert dax.driver == DEVDAX
        return dax

    # pondstack_agent.drivers.cxl.sysfs

    def text(self, path: str) -> str:
        name = path.rpartition("/")[2]
        if path.startswith((f"{MEMORY}/memory", f"{NODES}/node{NODE}/memory")):
            block = path.split("/")[-2]
            return {"state": "online" if block in self._online else "offline", "valid_zones": "Movable"}[name]
        if path == f"{DAX}/dax_region/create":
            return self._created
        if path.startswith(f"{DAX}/"):
            dax = self._dax[path.removeprefix(f"{DAX}/").split("/")[0]]
            values = {"size": str(dax.size), "start": hex(START + dax.start), "target_node": str(NODE)}
            return {**values, "align": str(SLICE_BYTES)}[name]
        size = str(len(self.content))
        return {
            AUTOPROBE: "1",
            f"{DEVICES}/mem0/ram/size": size,
            f"{DEVICES}/mem0/serial": hex(CXL_SERIAL),
            f"{DEVICES}/region0/commit": "1",
            f"{DEVICES}/region0/interleave_ways": "1",
            f"{DEVICES}/region0/target0": "decoder2.0",
            f"{DEVICES}/region0/resource": hex(START),
            f"{DEVICES}/region0/size": size,
            f"{MEMORY}/block_size_bytes": f"{SLICE_BYTES:x}",
            f"{MEMORY}/auto_online_blocks": "offline",
            f"{NODES}/has_cpu": "0",
            f"{NODES}/online": f"0,{NODE}",
            f"{NODES}/node0/distance": "10 20",
        }[path]

    def number(self, path: str) -> int:
        return int(self.text(path), 0)

    def hexadecimal(self, path: str) -> int:
        return int(self.text(path), 16)

    def cpus(self, path: str) -> set[int]:
        return {int(word) for word in self.text(path).split(",")}

    def names(self, path: str) -> list[str]:
        if path == DEVICES:
            return ["mem0"] * self.there + ["region0"] * (self._region and self.there)
        if path == f"{NODES}/node{NODE}":
            return sorted(self._online)
        assert path == DAX
        return sorted(self._dax)

    def exists(self, path: str) -> bool:
        if path.startswith(f"{MEMORY}/memory"):
            block = path.removeprefix(f"{MEMORY}/").split("/")[0]
            there = any(block in self._blocks(item) for item in self._dax.values() if item.driver == KMEM)
            return there and path.rpartition("/")[2] in (block, f"node{NODE}")
        if path == DAX:
            return self._region
        return path in (AUTOPROBE, "bus/dax/drivers/kmem", f"{DEVICES}/mem0/ram/size")

    def real(self, path: str) -> Path:
        return self._folder / "endpoint2" / path.rpartition("/")[2]

    def driver(self, path: str) -> str:
        return self._dax[path.rpartition("/")[2]].driver

    def write(self, path: str, text: str) -> None:
        match path.removeprefix(f"{DAX}/").removeprefix("bus/dax/drivers/").split("/"):
            case ["dax_region", "create"]:
                self._last += 1
                self._created = f"dax0.{self._last}"
                self._dax[self._created] = Dax()
            case ["dax_region", "delete"]:
                del self._dax[text]
            case [name, "mapping"]:
                first, last = (int(word, 16) for word in text.split("-"))
                taken = [item for item in self._dax.values() if item.size]
                if any(item.start <= last - START and first - START < item.start + item.size for item in taken):
                    raise DeviceFailed(f"{text} is taken")
                self._dax[name].start, self._dax[name].size = first - START, last + 1 - first
            case [name, "size"]:
                self._dax[name].size = 0
            case [driver, "new_id" | "bind"]:
                if self._dax[text].driver:
                    raise DeviceFailed(f"{text} has a driver")
                self._dax[text].driver = driver
            case [driver, "unbind"]:
                assert self._dax[text].driver == driver
                assert f"/dev/{text}" not in self.guests.values(), "its guest gets SIGBUS"
                self._dax[text].driver = ""
            case [*_, block, "state"]:
                assert text == "online_movable"
                self._online.add(block)

    def _blocks(self, dax: Dax) -> list[str]:
        first = (START + dax.start) // SLICE_BYTES
        return [f"memory{n}" for n in range(first, first + dax.size // SLICE_BYTES)]
