"""What the ledger writes of slices and their allocations: who holds which, from the assignment to the zeroing.

Every method is one transaction (pondstack.ledger.transactions). What moves slices is in the journal, with its moves, so
that a follower can replay it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from pondstack.domain.allocator import choose_extents
from pondstack.domain.causes import Cause
from pondstack.domain.errors import Conflict, NotAligned, NotFound, PoolFragmented, PoolShortage
from pondstack.domain.host_slices import HoldingKey
from pondstack.domain.model import Extent, Slice, indexes_of
from pondstack.domain.purpose import Purpose, check_node
from pondstack.domain.requests import AssignRequest
from pondstack.domain.states import OWNED, SliceEvent, SliceState
from pondstack.domain.transitions import fates, reinstatable
from pondstack.domain.units import slices_for
from pondstack.ledger.churn import UNCLAIMED_SECONDS
from pondstack.ledger.hosts import known_host, usable_pool
from pondstack.ledger.moves import HEIRS, MOVES, Moves, move
from pondstack.ledger.slice_inheritance import disinherit, handed_over, pass_on
from pondstack.ledger.store import Transaction
from pondstack.ledger.transactions import Transactions

_NOT_KEPT = ("pool_uuid", "shape", "source")
"""What of a request is not in its allocation's row."""


class Slices:
    """The slices of all pools."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    # What agents ask for

    def assign(self, operation_id: str, request: AssignRequest, *, hands_over: bool = False) -> dict[str, Any]:
        """Take free slices for a consumer; returns {"allocation_uuid", "pool_uuid", "extents": [{"start", "count"}]}.

        With a source it takes along what it has there, where that is possible and `hands_over` says that it may (a
        repetition's says nothing): then "handed" is true in the answer, no slice is taken, and they are the source's
        until it has let go of them.

        The effect in the journal, which is the answer, has "asked" (what the allocation's row says) and "moves" too.
        Raises PoolShortage, PoolFragmented, HostUnusable, NotFound, NotAligned, OperationMismatch, PurposeConflict, and
        Conflict when the operation's allocation has been released since, or nobody wants such a host slice.
        """
        uuid = str(uuid5(NAMESPACE_OID, f"pondstack allocation {operation_id}"))
        return self._transactions.once(
            operation_id,
            "assign",
            request.fields(),
            lambda tx: self._assign(tx, operation_id, uuid, request, hands_over=hands_over),
            lambda tx, _effect: self._check_still_held(tx, operation_id, uuid),
        )

    def _assign(
        self, tx: Transaction, operation_id: str, uuid: str, request: AssignRequest, *, hands_over: bool
    ) -> dict[str, Any]:
        pool = usable_pool(self._store, tx, request.pool_uuid, request.host)
        self._check_purpose(tx, operation_id, request, pool.name)
        try:
            wanted = slices_for(request.pool_mib, pool.slice_mib)
        except ValueError as error:
            raise NotAligned(f"{error}; ask for whole slices") from None
        if wanted < 1 or (request.shape is not None and sum(request.shape) != wanted):
            raise NotAligned(f"{request.pool_mib} MiB in the shape {request.shape} is no whole number of slices")
        owner = handed_over(self._store, tx, request, wanted) if hands_over else None
        if owner is not None:
            told = self._insert(tx, operation_id, uuid, request, owner.extents)
            self._store.allocations.set_heir(tx, owner.uuid, uuid)
            return {**told, "handed": True, HEIRS: {owner.uuid: uuid}, MOVES: []}
        try:
            extents = choose_extents(self._store.slices.free_indexes(tx, pool.uuid), wanted, request.shape)
        except PoolFragmented as error:
            raise PoolFragmented(f"pool {pool.name}: {error}") from None
        except PoolShortage as error:
            raise PoolShortage(f"pool {pool.name}: {error}") from None
        taken = [Slice(pool.uuid, index) for index in indexes_of(extents)]
        moves = self._move(tx, taken, SliceEvent.ASSIGN, host=request.host, allocation_uuid=uuid)
        return {**self._insert(tx, operation_id, uuid, request, extents), MOVES: moves}

    def _insert(
        self, tx: Transaction, operation_id: str, uuid: str, request: AssignRequest, extents: Sequence[Extent]
    ) -> dict[str, Any]:
        """Add an allocation; returns what the effect says of it."""
        plain = [{"start": extent.start, "count": extent.count} for extent in extents]
        asked = {name: value for name, value in request.fields().items() if name not in _NOT_KEPT}
        self._store.allocations.insert(tx, uuid, operation_id, request.pool_uuid, plain, asked)
        return {"allocation_uuid": uuid, "pool_uuid": request.pool_uuid, "extents": plain, "asked": asked}

    def _check_purpose(self, tx: Transaction, operation_id: str, request: AssignRequest, pool: str) -> None:
        """Raise PurposeConflict when the node is taken for something else, Conflict when no host slice is wanted.

        Conflict, too, for an order from before its host changed: its claim may have gone meanwhile.
        """
        present = self._store.allocations.on_node(tx, request.pool_uuid, request.host)
        check_node(request.purpose, present.values(), request.host, pool)
        if request.purpose is Purpose.GUEST:
            return
        key = HoldingKey(request.host, request.pool_uuid, request.purpose)
        holding = self._store.holdings.get(tx, key)
        wanted = range(holding.wanted if holding else 0)
        if not key.numbers([request.consumer_uuid]).keys() & set(wanted) or request.consumer_uuid in present:
            raise Conflict(
                f"host {request.host} is to hold {len(wanted)} slices of pool {pool} as {request.purpose}, and "
                f"{request.consumer_uuid} is none that is missing; look at `openstack memory host show {request.host}`"
            )
        now = known_host(self._store, tx, request.host).generation
        if not key.is_order(operation_id, now):
            raise Conflict(
                f"host {request.host} has changed (its generation is {now}) since it was told to hold this slice of "
                f"pool {pool}; the controller tells it again by itself"
            )

    def acknowledge(self, operation_id: str, allocation_uuid: str, host: str) -> None:
        """ASSIGNING becomes ONLINE; raises NotFound or IllegalTransition when the allocation was released meanwhile."""

        def work(tx: Transaction) -> dict[str, Any]:
            if not self._belongs(tx, allocation_uuid, host):
                raise NotFound(f"there is no allocation {allocation_uuid}; it was released, attach again")
            mine = self._store.slices.of_allocation(tx, allocation_uuid)
            waiting = [item for item in mine if item.state is not SliceState.ONLINE]
            moves = self._move(tx, waiting, SliceEvent.ACKNOWLEDGE)
            self._store.allocations.bump(tx, allocation_uuid)
            return {"slices": [item.index for item in waiting], MOVES: moves}

        arguments = {"allocation_uuid": allocation_uuid, "host": host}
        self._transactions.once(operation_id, "acknowledge", arguments, work)

    def release(
        self,
        operation_id: str,
        allocation_uuid: str,
        host: str,
        *,
        unacknowledged: bool = False,
        not_zero: Collection[int] = (),
        written_back: bool = False,
    ) -> str | None:
        """The host does not hold the allocation any more: its slices go to SANITIZING, quarantined ones too.

        The caller has the host's own answer for that (pondstack.controller.reconcile.intake): nothing else is evidence.

        `unacknowledged`: nothing changes unless the host has acknowledged none of it. `not_zero`: what the host found
        to have somebody's bytes loses its owner and is QUARANTINED. `written_back`: it wrote its CPU caches back.

        Slices of a device that failed lose their owner and stay QUARANTINED: an audit sets them free. Those that are
        being handed over become the heir's, as they are; what was to be the allocation's stays its owner's.
        Returns the pool with slices to sanitise; None when the allocation is unknown, which is settled. Raises Conflict
        when the allocation belongs to another host.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            entry, owner = self._store.allocations.with_owner(tx, allocation_uuid)
            _check_owner(allocation_uuid, entry.host if entry else None, host)
            mine = [item for item in self._store.slices.of_allocation(tx, allocation_uuid) if item.host == host]
            if unacknowledged and any(item.state is not SliceState.ASSIGNING for item in mine):
                mine = []
            if unacknowledged and entry is not None and entry.acknowledged:
                owner = None
            unclaimed = self._store.allocations.unclaimed_seconds(tx, allocation_uuid)
            moves = self._let_go(tx, mine, entry.heir if entry else None, not_zero, written_back)
            refused = disinherit(self._store, tx, [owner] if owner else [])
            self._store.allocations.drop_empty(tx, [allocation_uuid])
            pool_uuid = mine[0].pool_uuid if mine else None
            indexes = [item.index for item in mine]
            return {"pool_uuid": pool_uuid, "slices": indexes, UNCLAIMED_SECONDS: unclaimed, MOVES: moves, **refused}

        arguments = {"allocation_uuid": allocation_uuid, "host": host}
        pool_uuid: str | None = self._transactions.once(operation_id, "release", arguments, work)["pool_uuid"]
        return pool_uuid

    def _let_go(
        self,
        tx: Transaction,
        mine: Sequence[Slice],
        heir: str | None,
        not_zero: Collection[int],
        written_back: bool,
    ) -> Moves:
        """Take slices from an owner that does not hold them any more."""
        if heir is not None:
            epoch = self._transactions.epoch
            return pass_on(self._store, tx, heir, mine, epoch=epoch, written_back=written_back)
        moves: Moves = []
        for fate in fates(mine, not_zero):
            why = {"reason": fate.reason, "cause": fate.cause, "failure": fate.failure}
            moves += self._move(tx, fate.items, *fate.events, **why)
        return moves

    def note_release(self, operation_id: str, allocation_uuid: str, host: str) -> None:
        """Journal the release of what its host has not any more; raises Conflict while it, or another one, has it."""

        def work(tx: Transaction) -> dict[str, Any]:
            if self._belongs(tx, allocation_uuid, host):
                raise Conflict(
                    f"host {host} does not report that it released allocation {allocation_uuid}; it keeps it"
                )
            return {"pool_uuid": None, "slices": [], UNCLAIMED_SECONDS: None, MOVES: []}

        arguments = {"allocation_uuid": allocation_uuid, "host": host}
        self._transactions.once(operation_id, "release", arguments, work)

    def owners(self, allocations: Iterable[str], *, fenced: bool = False) -> dict[str, str]:
        """Return the host of each of these allocations that there is; `fenced`: as a write, under this epoch."""
        wanted = list(allocations)

        def read(tx: Transaction) -> dict[str, str]:
            found = {uuid: self._store.allocations.host_of(tx, uuid) for uuid in wanted}
            return {uuid: host for uuid, host in found.items() if host is not None}

        return (self._transactions.write if fenced else self._transactions.read)(read)

    def taken_up(self, allocation_uuid: str, host: str) -> bool:
        """Return whether all slices of an allocation are ONLINE for it, as a write, under this epoch.

        False while an heir's are its former host's. Raises NotFound when it was released meanwhile, Conflict when it is
        another host's, or when slices were set aside: what its guest wrote may not be in them.
        """

        def look(tx: Transaction) -> bool:
            entry, owner = self._store.allocations.with_owner(tx, allocation_uuid)
            if not self._belongs(tx, allocation_uuid, host) or entry is None:
                raise NotFound(f"there is no allocation {allocation_uuid}; it was released, attach again")
            mine = self._store.slices.of_allocation(tx, allocation_uuid)
            quarantined = [item for item in mine if item.state is SliceState.QUARANTINED]
            aside = [item for item in quarantined if item.cause is not Cause.AGENT_DOWN]  # that one may come back
            if aside:
                what = f"{aside[0].name} of allocation {allocation_uuid} is set aside: {aside[0].reason}"
                raise Conflict(f"{what}; the guest that came with it is lost, hard reboot its server")
            return owner is None and bool(mine) and all(item.state is SliceState.ONLINE for item in mine)

        return self._transactions.write(look)

    # What the controller itself does

    def begin_release(self, allocation_uuid: str, reason: str) -> int:
        """ASSIGNING and ONLINE become RELEASING: nobody claims them, their host has not confirmed. Returns how many."""

        def change(tx: Transaction) -> tuple[list[Slice], Moves]:
            mine = self._store.slices.of_allocation(tx, allocation_uuid)
            held = [item for item in mine if item.state in (SliceState.ASSIGNING, SliceState.ONLINE)]
            return held, self._move(tx, held, SliceEvent.RELEASE, reason=reason)

        return self._journal("begin_release", {"allocation_uuid": allocation_uuid}, change)

    def reinstate(self, allocation_uuid: str) -> int:
        """RELEASING, and QUARANTINED for its host's silence, become ONLINE: it is claimed again and its host holds it.

        All of the allocation or nothing: nothing when its host was fenced, or has confirmed the release, meanwhile.
        Returns how many.
        """

        def change(tx: Transaction) -> tuple[list[Slice], Moves]:
            back = reinstatable(self._store.slices.of_allocation(tx, allocation_uuid))
            host = self._store.hosts.get(tx, back[0].host or "") if back else None
            if host is not None and host.fenced is not None:
                back = []  # its device keeps the host out, or is about to
            return back, self._move(tx, back, SliceEvent.REINSTATE)

        return self._journal("reinstate", {"allocation_uuid": allocation_uuid}, change)

    def quarantine_allocation(self, allocation_uuid: str, cause: Cause, detail: str) -> int:
        """Set all owned slices of an allocation aside; they keep their owner. Returns how many."""

        def change(tx: Transaction) -> tuple[list[Slice], Moves]:
            held = [item for item in self._store.slices.of_allocation(tx, allocation_uuid) if item.state in OWNED]
            return held, self._move(tx, held, SliceEvent.QUARANTINE, reason=cause.reason(detail), cause=cause)

        return self._journal("quarantine", {"allocation_uuid": allocation_uuid}, change)

    def quarantine(
        self,
        pool_uuid: str,
        indexes: Iterable[int],
        cause: Cause,
        detail: str,
        *,
        failure: int | None = None,
        host: str | None = None,
        allocation_uuid: str | None = None,
    ) -> int:
        """Set those slices aside that nobody owns; returns how many.

        `host` and `allocation_uuid`: who holds them all the same. `failure`: of the device, with DEVICE_FAILED.
        """
        wanted = sorted(indexes)

        def change(tx: Transaction) -> tuple[list[Slice], Moves]:
            loose = (SliceState.FREE, SliceState.SANITIZING)
            found = [item for item in self._store.slices.at(tx, pool_uuid, wanted) if item.state in loose]
            why = {"reason": cause.reason(detail), "cause": cause, "failure": failure}
            holder = {"host": host, "allocation_uuid": allocation_uuid}
            return found, self._move(tx, found, SliceEvent.QUARANTINE, **why, **holder)

        return self._journal("quarantine", {"pool_uuid": pool_uuid, "indexes": wanted}, change)

    def audit(self, pool_uuid: str, indexes: Iterable[int], reason: str) -> int:
        """QUARANTINED becomes SANITIZING: it was proved that no host holds the slice. Returns how many.

        What is being handed over becomes the heir's instead: it was proved of its owner's host only, and nothing of
        that host's CPU caches.
        """
        wanted = sorted(indexes)

        def change(tx: Transaction) -> tuple[list[Slice], Moves]:
            found = self._at(tx, pool_uuid, wanted, SliceState.QUARANTINED)
            owners = {item.allocation_uuid for item in found if item.allocation_uuid}
            known = [entry for uuid in sorted(owners) if (entry := self._store.allocations.get(tx, uuid))]
            heirs = {entry.uuid: entry.heir for entry in known if entry.heir is not None}
            moves = self._move(
                tx, [i for i in found if i.allocation_uuid not in heirs], SliceEvent.AUDIT, reason=reason
            )
            for uuid, heir in heirs.items():
                mine = [item for item in found if item.allocation_uuid == uuid]
                epoch = self._transactions.epoch
                moves += pass_on(self._store, tx, heir, mine, epoch=epoch, written_back=False)
            self._store.allocations.drop_empty(tx, owners)
            return found, moves

        return self._journal("audit", {"pool_uuid": pool_uuid, "indexes": wanted}, change)

    def sanitized(self, pool_uuid: str, indexes: Iterable[int]) -> int:
        """SANITIZING becomes FREE: the device has zeroed and verified the slices. Returns how many."""
        wanted = sorted(indexes)

        def change(tx: Transaction) -> tuple[list[Slice], Moves]:
            found = self._at(tx, pool_uuid, wanted, SliceState.SANITIZING)
            return found, self._move(tx, found, SliceEvent.SANITIZED)

        return self._journal("sanitized", {"pool_uuid": pool_uuid, "indexes": wanted}, change)

    def mark_claims(self, claimed: Sequence[str], unclaimed: Sequence[str]) -> None:
        """Note which allocations Placement backs with a claim; an unclaimed one keeps the moment of its first note."""
        if claimed or unclaimed:
            self._transactions.write(lambda tx: self._store.allocations.mark_claims(tx, claimed, unclaimed))

    def _journal(
        self, kind: str, arguments: dict[str, Any], change: Callable[[Transaction], tuple[list[Slice], Moves]]
    ) -> int:
        def work(tx: Transaction) -> dict[str, Any]:
            items, moves = change(tx)
            return {"slices": [item.index for item in items], MOVES: moves}

        return len(self._transactions.journal(kind, arguments, work)["slices"])

    def _move(self, tx: Transaction, items: Sequence[Slice], *events: SliceEvent, **target: Any) -> Moves:
        return move(self._store.slices.swap, tx, items, *events, epoch=self._transactions.epoch, **target)

    def _at(self, tx: Transaction, pool_uuid: str, indexes: Iterable[int], state: SliceState) -> list[Slice]:
        return [item for item in self._store.slices.at(tx, pool_uuid, indexes) if item.state is state]

    def _belongs(self, tx: Transaction, uuid: str, host: str) -> bool:
        """Return whether there is such an allocation; raises Conflict when it is another host's."""
        owner = self._store.allocations.host_of(tx, uuid)
        _check_owner(uuid, owner, host)
        return owner is not None

    def _check_still_held(self, tx: Transaction, operation_id: str, uuid: str) -> None:
        """Raise Conflict when an allocation was released or set aside: no repetition gets its host into it again."""
        _, owner = self._store.allocations.with_owner(tx, uuid)
        held = (uuid, owner.uuid) if owner else (uuid,)
        states = {item.state for one in held for item in self._store.slices.of_allocation(tx, one)}
        if not states:
            raise Conflict(f"the allocation of operation {operation_id} was released already; make a new operation id")
        if SliceState.QUARANTINED in states:
            raise Conflict(f"the allocation of operation {operation_id} was quarantined since; make a new operation id")


def _check_owner(uuid: str, owner: str | None, host: str) -> None:
    if owner not in (None, host):
        raise Conflict(f"allocation {uuid} belongs to host {owner}, not to {host}")
