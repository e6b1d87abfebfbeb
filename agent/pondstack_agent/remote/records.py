"""Who borrows memory on this host, on disk: what was asked of the controller, so that a restarted agent goes on.

consumer  ASKING (its caller waits) -> ACTIVE -> ENDING (released; what was borrowed goes back) -> forgotten
borrow    ASKED (of the controller) -> OPEN (keys are here, the controller knows) -> forgotten, once nothing is left
          any -> UNDOING (it goes back) -> forgotten
"""

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from pondstack.domain.errors import Conflict, OperationMismatch, Unavailable
from pondstack_agent.records import Records


class State(StrEnum):
    """How far a consumer is."""

    ASKING = "asking"
    ACTIVE = "active"
    ENDING = "ending"


class BorrowState(StrEnum):
    """How far one request to the controller is."""

    ASKED = "asked"
    OPEN = "open"
    UNDOING = "undoing"


@dataclass(frozen=True, slots=True)
class Borrow:
    """One request to the controller. `allocation_uuid`: '' until it has answered.

    `source`: a host that hands buffers over by it, '' where it is of new ones only.
    """

    operation_id: str
    mib: int
    allocation_uuid: str = ""
    state: str = BorrowState.ASKED
    source: str = ""


@dataclass(frozen=True, slots=True)
class Extension:
    """The process of an instance that the data plane is to serve, with `local_mib` of `memory_mib` resident.

    `pid`, `started`, `memory`: as of GuestMemory. `homing`: its pages are to come home, and nobody serves it then.
    `incoming`: it comes from another host; where the data plane does not know it, its memory is not the guest's.
    """

    pid: int
    started: int
    memory: str
    memory_mib: int
    local_mib: int
    homing: bool = False
    incoming: bool = False


@dataclass(frozen=True, slots=True)
class Consumer:
    """Remote memory of one consumer: an instance (`guaranteed`, RAM extension) or its swap disk (best effort).

    `mib`: what it wants, and the size of the disk; `mirror`: its file. `at`: when it was asked for, by the agent's
    clock, in seconds. `asked`: how often the controller was asked. `extension`: None while no process of it is to be
    served. `instance_uuid`: of a swap disk, whose it is; the controller knows it by that. `source`: the host that it
    came from by a live migration, '' for none.
    """

    consumer_uuid: str
    operation_id: str
    guaranteed: bool
    mib: int
    mirror: str
    at: float
    project_id: str = ""
    user_id: str = ""
    state: str = State.ASKING
    asked: int = 0
    borrows: dict[str, Borrow] = field(default_factory=dict)
    extension: Extension | None = None
    instance_uuid: str = ""
    source: str = ""

    @property
    def is_disk(self) -> bool:
        """Whether it is the swap disk of an instance."""
        return bool(self.instance_uuid)

    @property
    def is_former(self) -> bool:
        """Whether it had a page store, which agents of former releases made; see FormerStores."""
        return not self.guaranteed and not self.is_disk

    @property
    def shares(self) -> bool:
        """Whether an instance has it, as a part of its memory or as its swap disk."""
        return not self.is_former and self.state != State.ENDING

    @property
    def share(self) -> dict[str, Any]:
        """Return what its instance is to have of it, as reports say it; `disk_mib` None: it has no process now."""
        found = {"consumer_uuid": self.borrower_uuid, "project_id": self.project_id}
        served = self.extension
        disk_mib = None if served is None else max(0, served.memory_mib - served.local_mib - self.mib)
        return {**found, "guaranteed": self.guaranteed, "mib": self.mib, "disk_mib": disk_mib}

    @property
    def borrower_uuid(self) -> str:
        """By which UUID the controller knows it."""
        return self.instance_uuid or self.consumer_uuid

    @property
    def allocations(self) -> frozenset[str]:
        """The controller's allocations that it has, or had a moment ago."""
        return frozenset(each.allocation_uuid for each in self.borrows.values() if each.allocation_uuid)

    def is_handed(self, allocation_uuid: str) -> bool:
        """Whether an allocation may have another host's pages in it, which must not be overwritten yet."""
        handed = any(each.source for each in self.borrows.values() if each.allocation_uuid == allocation_uuid)
        return handed and (self.extension is None or self.extension.incoming)

    def check_same(self, other: "Consumer") -> None:
        """Raise Conflict or OperationMismatch unless `other` is the same request again."""
        if self.state == State.ENDING:
            raise Conflict(f"the remote memory of consumer {self.consumer_uuid} is being released; try again later")
        if self.operation_id != other.operation_id:
            raise Conflict(f"consumer {self.consumer_uuid} has remote memory already; release it first")
        names = ("guaranteed", "mib", "project_id", "user_id")
        if any(getattr(self, name) != getattr(other, name) for name in names):
            raise OperationMismatch(f"operation {self.operation_id} was used for another request; make a new id")


class Consumers:
    """All consumers of this host, by their UUIDs. The caller orders writes of one."""

    def __init__(self, records: Records, clock: Callable[[], float]) -> None:
        records.folder.chmod(0o700)
        self._records, self.clock = records, clock
        self._room = threading.Lock()

    def get(self, consumer_uuid: str) -> Consumer | None:
        """Return one, None when it is not known."""
        found = self._records.get(consumer_uuid)
        return _load(found) if found else None

    def all(self) -> list[Consumer]:
        """Return all."""
        return [_load(record) for record in self._records.all().values()]

    def owner_of(self, allocation_uuid: str) -> Consumer | None:
        """Return whose an allocation is."""
        return next((each for each in self.all() if allocation_uuid in each.allocations), None)

    def begin_disk(self, wanted: Consumer, room_mib: int) -> Consumer:
        """Write a new swap disk down; raises Unavailable when all mirrors together would be over `room_mib`."""
        with self._room:
            self._check_mirror(wanted.mib, wanted.consumer_uuid, room_mib)
            return self.put(wanted)

    def extend(self, mine: Consumer, wanted: Extension, room_mib: int) -> Consumer:
        """Write down what is to be served; raises Unavailable when all mirrors together would be over `room_mib`."""
        with self._room:
            self._check_mirror(wanted.memory_mib, mine.consumer_uuid, room_mib)
            return self.put(mine, extension=wanted)

    def mirrored_mib(self, besides: str = "") -> int:
        """Return how much the mirrors of swap disks and of processes to be served take, without a consumer's."""
        others = [each for each in self.all() if each.consumer_uuid != besides]
        extended = sum(each.extension.memory_mib for each in others if each.extension is not None)
        return extended + sum(each.mib for each in others if each.is_disk)

    def _check_mirror(self, mib: int, mine: str, room_mib: int) -> None:
        taken = self.mirrored_mib(besides=mine)
        if taken + mib > room_mib:
            raise Unavailable(
                f"the mirror of {mib} MiB does not fit: {taken} of {room_mib} MiB are taken on this host; move a guest "
                "away, or raise [data_plane] mirror_mib"
            )

    def put(self, mine: Consumer, **changes: Any) -> Consumer:
        """Write one down."""
        mine = replace(mine, **changes)
        self._records.put(mine.consumer_uuid, asdict(mine))
        return mine

    def ask(self, mine: Consumer, mib: int) -> tuple[Consumer, Borrow]:
        """Write down that so much is asked for, before it is; of the host that it comes from only the first time."""
        number = mine.asked + 1
        name = f"{mine.consumer_uuid} {mine.operation_id} {number}"
        borrow = Borrow(str(uuid5(NAMESPACE_OID, name)), mib, source=mine.source if number == 1 else "")
        borrows = {**mine.borrows, borrow.operation_id: borrow}
        return self.put(mine, asked=number, borrows=borrows), borrow

    def change(self, mine: Consumer, borrow: Borrow, **changes: Any) -> tuple[Consumer, Borrow]:
        """Write down how far a request is."""
        borrow = replace(borrow, **changes)
        return self.put(mine, borrows={**mine.borrows, borrow.operation_id: borrow}), borrow

    def drop(self, mine: Consumer, borrow: Borrow) -> Consumer:
        """Forget a request of which nothing is left."""
        return self.put(mine, borrows={key: each for key, each in mine.borrows.items() if key != borrow.operation_id})

    def forget(self, consumer_uuid: str) -> None:
        """Forget one that has nothing any more."""
        self._records.remove(consumer_uuid)


def disk_uuid(instance_uuid: str) -> str:
    """Return by which UUID an instance's swap disk is on record, and known to the data plane."""
    return str(uuid5(NAMESPACE_OID, f"pondstack swap disk {instance_uuid}"))


def _load(record: dict[str, Any]) -> Consumer:
    borrows = {key: Borrow(**each) for key, each in record["borrows"].items()}
    extension = record.get("extension")
    return Consumer(**{**record, "borrows": borrows, "extension": Extension(**extension) if extension else None})
