"""What the ledger writes when a pool device or a host fails (Pond section 4.2).

The notification of a guest whose memory failed is in the journal, written with the quarantine itself: an operation
`memory_failed` is pending until there is an operation `told` with its id. So no crash loses it, and neither rounds nor
leaders make a second one of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

from pondstack.domain.causes import Cause, failure_detail
from pondstack.domain.errors import Conflict
from pondstack.domain.model import Slice
from pondstack.domain.states import OWNED, SliceEvent, SliceState
from pondstack.ledger.buffers import Buffers
from pondstack.ledger.hosts import MOST_OF_A_HOSTS_REASON, check_generation, known_host
from pondstack.ledger.moves import BUFFER_MOVES, MOVES, Moves, move
from pondstack.ledger.slice_inheritance import disinherit
from pondstack.ledger.store import HostEntry, Transaction
from pondstack.ledger.transactions import Transactions

MEMORY_FAILED, TOLD, QUARANTINE = "memory_failed", "told", "quarantine"
STALE_FENCE = (
    "it was fenced, unfenced or changed since that was read, so nothing is done. Look at the host; if it is dead and "
    "not fenced, fence it again with its present generation"
)


@dataclass(frozen=True, slots=True)
class MemoryFailed:
    """A guest whose pool memory is on a device that failed. `uuid` is the same however often it is sent.

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
    """Failures of devices and hosts, and their notifications.

    `down_seconds`: silence after which a host's agent counts as gone.
    """

    def __init__(self, transactions: Transactions, buffers: Buffers, down_seconds: float) -> None:
        self._transactions = transactions
        self._store = transactions.store
        self._buffers = buffers
        self._down = down_seconds

    def fail_allocation(self, allocation_uuid: str, failure: int, about: str, *, notify: bool) -> int:
        """Set an allocation aside because its device failed; returns how many slices changed.

        It keeps its owner, whose guest may still run; what was aside for another reason gets this one. With `notify`
        a notification is pending, one for each allocation and `failure`, the pool's count of them. `about`: the pool,
        for the reason.
        """
        reason = Cause.DEVICE_FAILED.reason(failure_detail(failure, about))
        operation_id = str(uuid5(NAMESPACE_OID, f"pondstack failure {failure} of allocation {allocation_uuid}"))

        def work(tx: Transaction) -> dict[str, Any]:
            mine = self._store.slices.of_allocation(tx, allocation_uuid)
            held = [item for item in mine if item.state in OWNED]
            why: dict[str, Any] = {"reason": reason, "cause": Cause.DEVICE_FAILED, "failure": failure}
            there = [item for item in mine if item.state is SliceState.QUARANTINED]
            aside = [replace(item, epoch=self._transactions.epoch, **why) for item in there]
            moves = self._move(tx, held, SliceEvent.QUARANTINE, **why)
            moves += self._move(tx, aside)
            event = self._store.allocations.facts(tx, allocation_uuid) if notify else None
            notification = event and {**event, "reason": reason}
            return {"slices": [item.index for item in held + aside], "event": notification, MOVES: moves}

        arguments = {"allocation_uuid": allocation_uuid, "failure": failure}
        return len(
            self._transactions.once(operation_id, MEMORY_FAILED if notify else QUARANTINE, arguments, work)["slices"]
        )

    def pending(self) -> list[MemoryFailed]:
        """Return the failures whose notifications were not sent yet, the oldest first."""
        found = self._transactions.read(lambda tx: self._store.journal.pending(tx, MEMORY_FAILED, TOLD))
        return [
            MemoryFailed(uuid=operation_id, detected_at=moment, **effect["event"])
            for operation_id, effect, moment in found
            if effect["event"] is not None  # None: it was released meanwhile
        ]

    def mark_sent(self, event: MemoryFailed) -> None:
        """Record that the notification of a failure was sent."""
        self._transactions.once(event.uuid, TOLD, {}, lambda _tx: {MOVES: []})

    def fence_host(
        self,
        name: str,
        reason: str,
        *,
        force: bool,
        generation: int | None = None,
        operation_id: str | None = None,
    ) -> int:
        """An operator says that a host is dead: it gets nothing, and all that it owns is set aside.

        Returns how many slices. They are for others, or for their heir, only after their devices have confirmed that
        they keep the host out; what was being handed over to it stays its owner's. What it borrowed is for others after
        the lenders have made its keys dead; what it lent is lost. Raises NotFound, Conflict when its agent lives and
        `force` is not set, and GenerationConflict when the host is not of the generation that is meant (None: whatever
        it is), as when a request arrives after the host was fenced and is back.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            known = known_host(self._store, tx, name)
            check_generation(known, generation, STALE_FENCE)
            if not force and known.fenced is None and known.silent_seconds <= self._down:
                raise Conflict(
                    f"host {name} is not dead: its agent reported {known.silent_seconds:.1f} s ago. Fencing takes the "
                    "memory from its running guests; power it off first, or force it if you are sure"
                )
            self._store.hosts.fence(tx, name, reason[:MOST_OF_A_HOSTS_REASON])
            held = [item for item in self._store.slices.of_host(tx, name) if item.state in OWNED]
            why = Cause.HOST_FENCED.reason(reason)
            moves = self._move(tx, held, SliceEvent.QUARANTINE, reason=why, cause=Cause.HOST_FENCED)
            lent = self._buffers.fence(tx, name, why)
            refused = disinherit(self._store, tx, self._store.allocations.of_heirs(tx, name))
            return {"slices": [item.index for item in held], MOVES: moves, BUFFER_MOVES: lent, **refused}

        # The generation is a condition, no part of what is asked for: with the same id it is the same fence.
        arguments = {"name": name, "reason": reason, "force": force}
        return len(self._transactions.once(operation_id or str(uuid4()), "fence_host", arguments, work)["slices"])

    def unfence_host(self, name: str, operation_id: str | None = None) -> None:
        """Let a host take part again. Raises NotFound, and Conflict until it has reported that it holds nothing."""

        def work(tx: Transaction) -> dict[str, Any]:
            known = known_host(self._store, tx, name)
            if known.fenced is not None:
                _check_empty(known)
                self._store.hosts.unfence(tx, name)
            return {MOVES: []}

        self._transactions.once(operation_id or str(uuid4()), "unfence_host", {"name": name}, work)

    def _move(self, tx: Transaction, items: Sequence[Slice], *events: SliceEvent, **target: Any) -> Moves:
        return move(self._store.slices.swap, tx, items, *events, epoch=self._transactions.epoch, **target)


def _check_empty(host: HostEntry) -> None:
    """Raise Conflict unless a fenced host has reported, since, that it holds nothing."""
    if not host.reported_since_fenced:
        raise Conflict(f"the agent of host {host.name} has not reported since the host was fenced; start it first")
    if host.attached:
        held = ", ".join(sorted(item["allocation_uuid"] for item in host.attached))
        raise Conflict(
            f"host {host.name} still holds what was taken from it (allocations {held}); its agent drops them once no "
            "guest uses them: destroy the guests that still run there"
        )
