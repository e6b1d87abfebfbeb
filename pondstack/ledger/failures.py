"""What the ledger writes when a pool device or a host fails (Pond section 4.2). Part of pondstack.ledger.ledger.Ledger.

Who has to be told that a guest's memory failed is in the journal, written with the quarantine itself: an operation
`memory_failed` waits to be told until there is an operation `told` with its id. So no crash loses it, and neither
rounds nor leaders make a second one of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import NAMESPACE_OID, uuid4, uuid5

from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.domain.causes import Cause, failure_detail
from pondstack.domain.states import OWNED, SliceEvent, SliceState
from pondstack.ledger.buffer_moves import BUFFER_MOVES
from pondstack.ledger.slice_moves import MOVES
from pondstack.ledger.store import Moves, Tables

T = TypeVar("T")
MEMORY_FAILED, TOLD, QUARANTINE = "memory_failed", "told", "quarantine"


@dataclass(frozen=True, slots=True)
class MemoryFailed:
    """A guest whose pool memory is on a device that failed. `uuid` is the same however often it is told.

    `detected_at`: seconds since the epoch by the database's clock.
    """

    uuid: str
    allocation_uuid: str
    instance_uuid: str
    project_id: str
    user_id: str
    host: str
    pool_uuid: str
    pool_name: str
    pool_mib: int
    guest_mib: int
    reason: str
    detected_at: float


class Failures:
    """Methods of the Ledger."""

    database: Database
    epoch: int
    _down: float
    _tables: Tables

    def _once(
        self, operation_id: str, kind: str, arguments: dict[str, Any], work: Callable[[Session], dict[str, Any]]
    ) -> dict[str, Any]:
        raise NotImplementedError

    def fail_allocation(self, allocation_uuid: str, failure: int, about: str, *, tell: bool) -> int:
        """Set an allocation aside because its device failed; returns how many slices changed.

        It keeps its owner, whose guest may still run; what was aside for another reason gets this one. With `tell`
        somebody has to be told, once for each allocation and `failure`, the pool's count of them. `about`: the pool,
        for the reason.
        """
        reason = Cause.DEVICE_FAILED.reason(failure_detail(failure, about))
        operation_id = str(uuid5(NAMESPACE_OID, f"pondstack failure {failure} of allocation {allocation_uuid}"))

        def work(session: Session) -> dict[str, Any]:
            slices = self._tables.slices
            mine = slices.of_allocation(session, allocation_uuid)
            held = [item for item in mine if item.state in OWNED]
            why: dict[str, Any] = {"reason": reason, "cause": Cause.DEVICE_FAILED, "failure": failure}
            there = [item for item in mine if item.state is SliceState.QUARANTINED]
            aside = [replace(item, epoch=self.epoch, **why) for item in there]
            moves = slices.move(session, held, SliceEvent.QUARANTINE, epoch=self.epoch, **why)
            moves += slices.move(session, aside, epoch=self.epoch)
            event = self._tables.allocations.facts(session, allocation_uuid) if tell else None
            told = event and {**event, "reason": reason}
            return {"slices": [item.index for item in held + aside], "event": told, MOVES: moves}

        arguments = {"allocation_uuid": allocation_uuid, "failure": failure}
        return len(self._once(operation_id, MEMORY_FAILED if tell else QUARANTINE, arguments, work)["slices"])

    def untold(self) -> list[MemoryFailed]:
        """Return what nobody was told yet, the oldest first."""
        found = self.database.read(lambda session: self._tables.journal.unanswered(session, MEMORY_FAILED, TOLD))
        return [
            MemoryFailed(uuid=operation_id, detected_at=moment, **effect["event"])
            for operation_id, effect, moment in found
            if effect["event"] is not None  # None: it was released meanwhile
        ]

    def told(self, event: MemoryFailed) -> None:
        """Note that somebody was told."""
        self._once(event.uuid, TOLD, {}, lambda _session: {MOVES: []})

    def fence_host(self, name: str, reason: str, *, force: bool, operation_id: str | None = None) -> int:
        """An operator says that a host is dead: it gets nothing, and all that it owns is set aside.

        Returns how many slices. They are for others only after their devices have confirmed that they keep the host
        out; what it borrowed, after the lenders have made its keys dead; what it lent is lost. Raises NotFound, and
        Conflict when its agent lives, unless `force` is set.
        """

        def work(session: Session) -> dict[str, Any]:
            self._tables.pools.fence_host(session, name, reason, None if force else self._down)
            held = [item for item in self._tables.slices.of_host(session, name) if item.state in OWNED]
            why = Cause.HOST_FENCED.reason(reason)
            moves = self._tables.slices.move(
                session, held, SliceEvent.QUARANTINE, epoch=self.epoch, reason=why, cause=Cause.HOST_FENCED
            )
            lent = self._fence_lent(session, name, why)
            return {"slices": [item.index for item in held], MOVES: moves, BUFFER_MOVES: lent}

        arguments = {"name": name, "reason": reason, "force": force}
        return len(self._once(operation_id or str(uuid4()), "fence_host", arguments, work)["slices"])

    def _fence_lent(self, session: Session, name: str, why: str) -> Moves:
        """Set aside what a fenced host borrowed, and give up what it lent; see pondstack.ledger.buffers."""
        raise NotImplementedError

    def unfence_host(self, name: str, operation_id: str | None = None) -> None:
        """Let a host take part again. Raises NotFound, and Conflict until it has reported that it holds nothing."""

        def work(session: Session) -> dict[str, Any]:
            self._tables.pools.unfence_host(session, name)
            return {MOVES: []}

        self._once(operation_id or str(uuid4()), "unfence_host", {"name": name}, work)
