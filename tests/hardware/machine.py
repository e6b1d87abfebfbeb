"""What an emulated host is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

OUTSIDE = "10.0.2.2"
"""The machine of the tests, for a host with `network`."""


@dataclass(frozen=True)
class Wire:
    """One end of a network cable between two hosts: of its two ends, one listens on the Unix socket."""

    socket: Path
    listens: bool

    @property
    def mac(self) -> str:
        """Of the network card at this end, by which the host finds it."""
        return f"52:54:00:77:00:0{2 - self.listens}"


@dataclass(frozen=True)
class Machine:
    """One host. Any number of hosts may name the same device file: then it is a multi-headed device.

    `devices`: files that are the memory of CXL type 3 devices; the serials are 1, 2... in this order, which need not be
    that of mem0, mem1... `shares`: folder in the host to the folder outside that it sees there, read-only. `network`:
    the host reaches the machine of the tests as OUTSIDE. `wire`: a cable to another host.
    """

    name: str
    devices: tuple[Path, ...] = ()
    shares: Mapping[str, Path] = field(default_factory=dict)
    memory_mib: int = 1536
    cpus: int = 2
    network: bool = False
    wire: Wire | None = None
    kernel_options: tuple[str, ...] = ("memhp_default_state=offline",)
    qemu_options: tuple[str, ...] = ()
    boot_seconds: float = 300.0
    """Limit until the host answers; a calm machine needs a tenth."""
