"""The ledger's part in handing slices over to the host that their consumer moves to (pondstack.domain.inheritance).

Called within a transaction.
"""

from collections.abc import Sequence
from typing import Any

from pondstack.domain.inheritance import passed_on
from pondstack.domain.model import Slice
from pondstack.domain.purpose import Purpose
from pondstack.domain.requests import AssignRequest
from pondstack.domain.states import SliceState
from pondstack.ledger.moves import HEIRS, Moves, move
from pondstack.ledger.store import AllocationEntry, Store, Transaction


def handed_over(store: Store, tx: Transaction, request: AssignRequest, wanted: int) -> AllocationEntry | None:
    """Return the allocation whose slices a consumer takes along to the host of a request; None: it gets others.

    All of them are ONLINE where it moves from, they have no heir yet, and their nodes are those that were asked for.
    """
    if not request.source or request.source == request.host or request.purpose is not Purpose.GUEST:
        return None
    place = request.consumer_uuid, request.source, request.pool_uuid
    for entry in store.allocations.of_consumer(tx, *place, Purpose.GUEST):
        shape = tuple(extent.count for extent in entry.extents)
        if entry.heir is not None or sum(shape) != wanted or request.shape not in (None, shape):
            continue
        states = [item.state for item in store.slices.of_allocation(tx, entry.uuid)]
        if states == [SliceState.ONLINE] * wanted:
            return entry
    return None


def pass_on(
    store: Store, tx: Transaction, heir_uuid: str, items: Sequence[Slice], *, epoch: int, written_back: bool
) -> Moves:
    """Have slices become an heir's, since their owner has let go of them, or is kept out of them.

    `written_back`: the owner's host has written its CPU caches back. An heir that needs that gets them set aside else.
    """
    heir = store.allocations.get(tx, heir_uuid)
    assert heir is not None, f"there is no allocation {heir_uuid} that could inherit"
    target = {"host": heir.host, "allocation_uuid": heir.uuid}
    moves: Moves = []
    whole = written_back or not heir.write_back
    for fate in passed_on(items, acknowledged=heir.acknowledged, whole=whole):
        why = {"reason": fate.reason, "cause": fate.cause, "failure": fate.failure}
        moves += move(store.slices.swap, tx, fate.items, *fate.events, epoch=epoch, **target, **why)
    return moves


def disinherit(store: Store, tx: Transaction, owners: Sequence[AllocationEntry]) -> dict[str, Any]:
    """Have allocations keep their slices, and forget those that were to get them; returns what the journal tells."""
    if not owners:
        return {}
    for entry in owners:
        store.allocations.set_heir(tx, entry.uuid, None)
    store.allocations.drop_empty(tx, [entry.heir for entry in owners if entry.heir is not None])
    return {HEIRS: {entry.uuid: None for entry in owners}}
