"""A mitigation on disk, one for each allocation: what was asked for, how far it came, how it ended."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from pondstack.rpc.wire import Mitigation
from pondstack_agent.records import Records


class State(StrEnum):
    """MOVING -> MITIGATED, ABORTED or FAILED. Slices are given back after MITIGATED only, of a held one by order."""

    MOVING = "moving"
    MITIGATED = "mitigated"
    ABORTED = "aborted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Entry:
    """`pages` and `left`: pages of 4 KiB on the pool when it began and ended. `at`: seconds of the agent's clock.

    `hold`: once mitigated, the slices stay with the guest until the controller orders them back.
    """

    operation_id: str
    consumer_uuid: str
    allocation_uuid: str
    pool_node: int
    at: float
    pages: int = 0
    left: int = 0
    state: str = State.MOVING
    seconds: float = 0.0
    reason: str = ""
    hold: bool = False

    def answer(self, *, left: int | None = None, seconds: float | None = None) -> Mitigation:
        """Return it for the wire; while it moves, with what was just seen."""
        left = self.left if left is None else left
        return Mitigation(
            consumer_uuid=self.consumer_uuid,
            allocation_uuid=self.allocation_uuid,
            operation_id=self.operation_id,
            state=str(self.state),
            pages_total=self.pages,
            pages_moved=max(self.pages - left, 0),
            seconds=self.seconds if seconds is None else seconds,
            reason=self.reason,
            held=self.hold,
        )


class Entries:
    """The mitigations that this agent remembers, by allocation."""

    def __init__(self, records: Records, clock: Callable[[], float]) -> None:
        self._records, self.clock = records, clock

    def put(self, entry: Entry, **changes: Any) -> Entry:
        """Write one down."""
        entry = replace(entry, **changes)
        self._records.put(entry.allocation_uuid, asdict(entry))
        return entry

    def all(self) -> list[Entry]:
        """Return all, the newest last."""
        return sorted((Entry(**record) for record in self._records.all().values()), key=lambda item: item.at)

    def has(self, allocation_uuid: str) -> bool:
        """Tell whether there is one of an allocation."""
        return self._records.get(allocation_uuid) is not None

    def latest(self, consumer_uuid: str) -> Entry | None:
        """Return the newest of a consumer."""
        return next((item for item in reversed(self.all()) if item.consumer_uuid == consumer_uuid), None)

    def forget(self, entry: Entry) -> None:
        """Drop one."""
        self._records.remove(entry.allocation_uuid)
