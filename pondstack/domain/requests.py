"""What is asked of the ledger on behalf of a consumer, as values: the same ones in clients, endpoints and ledger.

The operation id is not part of a request: it names it. The same id with another request is a mistake.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from pondstack.domain import column_shapes
from pondstack.domain.conform import SHAPE
from pondstack.domain.purpose import Purpose


@dataclass(frozen=True, slots=True)
class AssignRequest:
    """Pool memory for one consumer on one host (Pond 4.2: Add_capacity).

    `shape`: slices per extent that the answer must have (a live migration's destination); None lets the allocator
    choose. `purpose`: of a host slice, what the host itself wants it for (pondstack.domain.host_slices). `source`: the
    host that the consumer moves from, whose slices are handed over where they can be. `write_back`: `host` reads them
    past that host's CPU caches, which have to be written back first (pondstack.domain.inheritance).
    """

    consumer_uuid: str
    host: str
    pool_uuid: str
    pool_mib: int = field(metadata={SHAPE: column_shapes.MIB})
    guest_mib: int = field(metadata={SHAPE: column_shapes.MIB})
    project_id: str = ""
    user_id: str = ""
    shape: tuple[int, ...] | None = None
    purpose: Purpose = Purpose.GUEST
    source: str = ""
    write_back: bool = False

    def fields(self) -> dict[str, Any]:
        """Return what it says, by field.

        A guest's has no purpose, one that does not move no source, and one without caches of another host no
        write-back: the former release knows none of them, nor do operations that it has on record.
        """
        found = {**asdict(self), "purpose": str(self.purpose)}
        if self.purpose is Purpose.GUEST:
            del found["purpose"]
        if not self.source:
            del found["source"]
        if not self.write_back:
            del found["write_back"]
        return found


@dataclass(frozen=True, slots=True)
class BorrowRequest:
    """Lent memory for one consumer on one host (Zombieland 4.2).

    `guaranteed`: all or nothing (GS_alloc_ext); else as much as there is, up to `remote_mib` (GS_alloc_swap).
    `source`: the host that the consumer moves from, whose buffers are handed over as far as `host` can read them.
    """

    consumer_uuid: str
    host: str
    remote_mib: int = field(metadata={SHAPE: column_shapes.MIB})
    guaranteed: bool
    project_id: str = ""
    user_id: str = ""
    source: str = ""

    def fields(self) -> dict[str, Any]:
        """Return what it says, by field; without a source as the former release knows it, and has it on record."""
        found = asdict(self)
        if not self.source:
            del found["source"]
        return found
