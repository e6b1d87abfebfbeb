"""What a lender has: buffers, and which life of its memory they are of. No I/O."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from pondstack.domain.admission import LentReport, mark
from pondstack.domain.lending import LenderKind


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer. `index`: its number within an incarnation, never used again there; `offset_mib` follows from it.

    `borrower`: who has its live key, '' nobody. `generation`: of its newest key. `backed`: its pages are there;
    between a revocation and the next key they are not. `locked`: the kernel keeps them in RAM. `failed`: why its device
    did not end its key, which was revoked; '' otherwise. Nobody gets such a buffer, nor does the host get it back.
    """

    index: int
    borrower: str = ""
    generation: int = 0
    backed: bool = True
    locked: bool = False
    failed: str = ""

    def to_wire(self, buffer_mib: int) -> dict[str, Any]:
        """Return JSON types only."""
        return asdict(self) | {"offset_mib": self.index * buffer_mib}

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Undo to_wire."""
        # A process from before an upgrade does not tell all.
        return cls(**{item.name: data[item.name] for item in fields(cls) if item.name in data})


@dataclass(frozen=True, slots=True)
class Holding:
    """All that one life of a lender's memory has. `incarnation` '': no lender runs, and nothing is lent."""

    incarnation: str = ""
    kind: LenderKind = LenderKind.ACTIVE
    buffer_mib: int = 0
    buffers: tuple[Buffer, ...] = ()

    @property
    def mib(self) -> int:
        """Size of all buffers in MiB."""
        return len(self.buffers) * self.buffer_mib

    @property
    def promised_mib(self) -> int:
        """MiB that are lent although their pages are the host's at this moment."""
        return sum(not buffer.backed for buffer in self.buffers) * self.buffer_mib

    @property
    def failed_mib(self) -> int:
        """MiB that cannot be taken back, because a device did not end their keys."""
        return sum(bool(buffer.failed) for buffer in self.buffers) * self.buffer_mib

    def failed(self) -> dict[str, str]:
        """Return the buffers whose keys a device did not end, as JSON carries them: index to reason."""
        return {str(buffer.index): buffer.failed for buffer in self.buffers if buffer.failed}

    def lent(self) -> LentReport:
        """Return all of it in short, whoever has it."""
        return LentReport(self.mib, mark((self.incarnation, item.index) for item in self.buffers))

    def offered(self) -> list[dict[str, int]]:
        """Return the buffers as `delegate` tells them."""
        return [{"index": item.index, "offset_mib": item.index * self.buffer_mib} for item in self.buffers]

    def to_wire(self) -> dict[str, Any]:
        """Return JSON types only."""
        buffers = [buffer.to_wire(self.buffer_mib) for buffer in self.buffers]
        return {
            "incarnation": self.incarnation,
            "kind": str(self.kind),
            "buffer_mib": self.buffer_mib,
            "buffers": buffers,
        }

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Undo to_wire."""
        buffers = tuple(Buffer.from_wire(item) for item in data["buffers"])
        return cls(data["incarnation"], LenderKind(data["kind"]), data["buffer_mib"], buffers)


def numbered(generations: Mapping[str, int] | None) -> dict[int, int] | None:
    """Return what JSON has made of numbers by index; None when there was nothing."""
    return None if generations is None else {int(index): number for index, number in generations.items()}
