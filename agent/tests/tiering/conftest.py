"""A kernel's tiering attributes as a real folder, with the rules by which the real one answers a write."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pondstack_agent.records import Records
from pondstack_agent.tiering.kernel import Kernel
from pondstack_agent.tiering.policy import Policy
from pondstack_agent.tiering.tiering import Tiering

DEMOTION = "sys/kernel/mm/numa/demotion_enabled"
BALANCING = "proc/sys/kernel/numa_balancing"
LIMIT = "proc/sys/kernel/numa_balancing_promote_rate_limit_MBps"
WATERMARK = "proc/sys/vm/watermark_scale_factor"
WEIGHTS = "sys/kernel/mm/mempolicy/weighted_interleave"
NODES = "sys/devices/system/node"
TIERS = "sys/devices/virtual/memory_tiering"
BOOT = "proc/sys/kernel/random/boot_id"

AS_BOOTED = {DEMOTION: "false", BALANCING: "1", LIMIT: "65536", WATERMARK: "10", f"{WEIGHTS}/node0": "1"}
RANGES = {BALANCING: (0, 3), LIMIT: (0, 2**31 - 1), WATERMARK: (1, 3000)}


@dataclass
class Machine:
    """The attributes of one machine, and every write of them; `before_write` may end the process, as it were."""

    root: Path
    writes: list[tuple[str, str]] = field(default_factory=list)
    before_write: Callable[[str, str], None] = lambda _path, _text: None
    after_write: Callable[[str, str], None] = lambda _path, _text: None

    def put(self, path: str, text: str) -> None:
        """Set an attribute, as the kernel or somebody else does."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(f"{text}\n")

    def get(self, path: str) -> str:
        """Return an attribute."""
        return (self.root / path).read_text().strip()

    def all(self) -> dict[str, str]:
        """Return the settings."""
        weights = sorted((self.root / WEIGHTS).glob("node*"))
        paths = [*AS_BOOTED, *(str(path.relative_to(self.root)) for path in weights)]
        return {path: self.get(path) for path in paths}

    def write(self, path: str, text: str) -> str:
        """Answer a write as the kernel: '' or its reason."""
        name = str(Path(path).relative_to(self.root))
        self.before_write(name, text)
        low, high = RANGES.get(name, (1, 255))
        if name == DEMOTION or name.rpartition("/")[2] in ("auto", "__auto_type"):
            if text not in ("true", "false"):
                return os.strerror(errno.EINVAL)
        elif not text.isdigit() or not low <= int(text) <= high:
            return os.strerror(errno.EINVAL)
        self.put(name, text)
        self.writes.append((name, text))
        self.after_write(name, text)
        return ""

    def reboot(self) -> None:
        """Start the kernel anew."""
        self.put(BOOT, f"boot-{int(self.get(BOOT).rpartition('-')[2]) + 1}")
        for path, text in AS_BOOTED.items():
            self.put(path, text)

    def online(self, node: int, tier: int) -> None:
        """Bring a pool node online in a tier."""
        self.put(f"{NODES}/has_memory", f"0,{node}")
        self.put(f"{TIERS}/memory_tier{tier}/nodelist", "0" if tier == 4 else str(node))
        if tier == 4:
            self.put(f"{TIERS}/memory_tier4/nodelist", f"0,{node}")

    def kernel(self) -> Kernel:
        """Return what the code under test gets."""
        return Kernel(self.root, self.write)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One local node, no pool memory yet (attributes as a 6.12 kernel has them)."""
    made = Machine(tmp_path / "machine")
    for path, text in {
        **AS_BOOTED,
        BOOT: "boot-1",
        f"{NODES}/has_cpu": "0",
        f"{NODES}/has_memory": "0",
        f"{TIERS}/memory_tier4/nodelist": "0",
        f"{WEIGHTS}/node1": "1",
    }.items():
        made.put(path, text)
    return made


@pytest.fixture
def start(machine: Machine, tmp_path: Path) -> Callable[..., Tiering]:
    """Start an agent's tiering with a policy; a new object is an agent that was started again."""

    def make(**policy: object) -> Tiering:
        tiering = Tiering(Policy(**policy), machine.kernel(), Records(tmp_path / "state"))  # type: ignore[arg-type]
        tiering.start()
        return tiering

    return make
