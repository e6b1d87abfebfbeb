"""What the process of one page store is told, once and for its whole life, in a file of its folder."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from pondstack.devices.atomic_files import write_json
from pondstack.domain.errors import BadRequest
from pondstack.domain.shape import Fields, Flag, Name, Number, OneOf, Table, Text, Whole
from pondstack.domain.units import MIB
from pondstack_rdma.sealing import PAGE_BYTES
from pondstack_rdma.store.mirror.disk import Survives
from pondstack_rdma.store.mirror.mirror import MirrorLimits

FILE = "settings.json"


def _check_mirror(mirror: str) -> None:
    """Raise ValueError unless it is where the agent puts mirrors: the file there is made as large as all pages."""
    if not mirror.startswith("/") or ".." in mirror.split("/"):
        raise ValueError("mirror is no absolute path")


_SECONDS = Number(0.0, 1e9)
_SHAPE = Fields(
    {"consumer_uuid": Name(), "mib": Whole(1, 2**31 - 1), "mirror": Text(4096, 1), "transport": Name()},
    {
        "options": Table(Text(255, 1), Text()),
        "sealing": Flag(),
        "survives": OneOf(tuple(Survives)),
        "queue_pages": Whole(1, 2**31 - 1),
        "patience_seconds": _SECONDS,
        "access_seconds": _SECONDS,
        "pages_per_second": Number(0.0, 1e12),
    },
    rule=lambda found: _check_mirror(found["mirror"]),
)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Of one consumer. `mirror`: its file. `transport` with its `options` is the host's; seconds are of each access."""

    consumer_uuid: str
    mib: int
    mirror: str
    transport: str
    options: dict[str, str] = field(default_factory=dict)
    sealing: bool = True
    survives: str = Survives.PROCESS.value
    queue_pages: int = 4096
    patience_seconds: float = 5.0
    access_seconds: float = 1.0
    pages_per_second: float = 20000.0

    @property
    def pages(self) -> int:
        """Its pages."""
        return self.mib * MIB // PAGE_BYTES

    @property
    def limits(self) -> MirrorLimits:
        """Of its mirror. The batch is part of the file's layout, and never changes."""
        return MirrorLimits(queue_pages=self.queue_pages, patience_seconds=self.patience_seconds)

    def write(self, folder: Path) -> None:
        """Write it down, for its user only."""
        write_json(folder / FILE, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return what was written; raises BadRequest."""
        try:
            found: dict[str, Any] = json.loads((folder / FILE).read_text())
            _SHAPE.check(found)
            return cls(**found)
        except (OSError, ValueError, RecursionError) as error:
            raise BadRequest(
                f"{folder / FILE} holds no settings: {error}; release the consumer of this store"
            ) from error
