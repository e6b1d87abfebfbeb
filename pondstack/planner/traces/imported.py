"""What an import gives: a trace, and what is known of its source besides."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Trace


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of a cloud. `vcpus` and `memory_mib`: of all of them together, as Placement may give them out."""

    number: int
    vcpus: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Imported:
    """A trace with how many rows its source had. `notes`: what was done with rows that were kept."""

    trace: Trace
    rows: int
    notes: tuple[str, ...] = ()
    hosts: Hosts | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What an import is told. `host_vcpus`, `host_gib`: of one host, where the format tells sizes as shares of it.

    `seed`: of what a format only knows bounds of. `end_seconds`: end of the trace, None: its latest time.
    """

    name: str
    seed: int = 1
    host_vcpus: int = 0
    host_gib: float = 0.0
    end_seconds: int | None = None

    def check_host(self, path: Path, *, vcpus: bool = True) -> None:
        """Raise BadRequest unless the host is given whose shares are in a source; `vcpus`: also of its vCPUs."""
        if self.host_gib <= 0 or (vcpus and self.host_vcpus < 1):
            wanted = "--host-vcpus and --host-gib" if vcpus else "--host-gib"
            raise BadRequest(f"{path} has sizes as shares of a machine: give {wanted}, of one host")


Loader = Callable[[Path, Options], Imported]
"""Reads a file or a folder. Raises BadRequest for what cannot be read at all, OSError."""
