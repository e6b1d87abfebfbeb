"""Lenders, buffers and who borrows them in a MemoryStore; what pondstack.db.buffers is in SQL."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pondstack.db.buffer_moves import plan
from pondstack.db.retry import CompareAndSetLost
from pondstack.domain.lending import Buffer, Lender, RemoteAllocation
from pondstack.domain.states import SliceEvent, SliceState
from pondstack.testing.memory_store import BufferRow, Transaction


def lender(tx: Transaction, host: str) -> Lender | None:
    """Return a lender, None when the host has never lent anything."""
    return tx.tables.lenders.get(host)


def put_lender(tx: Transaction, item: Lender) -> None:
    """Add a lender, or write down what it is now."""
    tx.put(tx.tables.lenders, item.host, item)


def add(tx: Transaction, items: Sequence[Buffer]) -> None:
    """Add buffers, all of one lender."""
    for item in items:
        tx.put(tx.tables.buffers, _key(item), BufferRow(item, tx.now()))


def of_lender(tx: Transaction, host: str) -> list[Buffer]:
    """Return the buffers of a lender by index, those of a former incarnation first."""
    return [item for item in _all(tx) if item.lender == host]


def of_allocation(tx: Transaction, allocation_uuid: str) -> list[Buffer]:
    """Return the buffers that point at an allocation."""
    return [item for item in _all(tx) if item.allocation_uuid == allocation_uuid]


def of_borrower(tx: Transaction, host: str) -> list[Buffer]:
    """Return the buffers that a host owns, or that are aside because of it."""
    return [item for item in _all(tx) if item.host == host]


def free(tx: Transaction) -> list[Buffer]:
    """Return all free buffers."""
    return [item for item in _all(tx) if item.state is SliceState.FREE]


def unacknowledged(tx: Transaction, seconds: float) -> list[Buffer]:
    """Return the buffers that have been ASSIGNING for longer than that."""
    changed = {key: row.changed_at for key, row in tx.tables.buffers.items()}
    waiting = [item for item in _all(tx) if item.state is SliceState.ASSIGNING]
    return [item for item in waiting if tx.now() - changed[_key(item)] > seconds]


def everything(tx: Transaction) -> list[Buffer]:
    """Return all buffers."""
    return _all(tx)


def borrowers(tx: Transaction, seconds: float) -> list[str]:
    """Return the hosts that say what they borrow, within that time, and that may have memory, by name."""
    late, hosts = silent(tx, seconds), tx.tables.hosts.values()
    return sorted(row.name for row in hosts if row.borrowed is not None and row.name not in late and row.enabled)


def silent(tx: Transaction, seconds: float) -> set[str]:
    """Return the hosts whose agents are silent for longer than that, and those that are fenced."""
    hosts = tx.tables.hosts.values()
    return {row.name for row in hosts if tx.now() - row.last_heartbeat > seconds or row.fenced_at is not None}


def move(tx: Transaction, items: Sequence[Buffer], *events: SliceEvent, **target: Any) -> list[dict[str, Any]]:
    """Take buffers through `events`, all or none; returns the moves for the journal. `target`: see buffer_moves.plan.

    Raises IllegalTransition, CompareAndSetLost (a buffer is no longer as it was read).
    """
    swaps, rows = plan(items, *events, **target), tx.tables.buffers
    for swap in swaps:
        for index in swap.indexes:
            present = rows[swap.after.incarnation, index].item
            if (present.state, present.allocation_uuid) != (swap.state, swap.owner):
                raise CompareAndSetLost(f"buffer {index} of lender {swap.after.lender} is no longer {swap.state}")
            after = replace(
                present,
                state=swap.after.state,
                host=swap.after.host,
                allocation_uuid=swap.after.allocation_uuid,
                generation=present.generation + swap.assigned,
                epoch=swap.after.epoch,
                reason=swap.after.reason,
            )
            tx.put(rows, _key(after), BufferRow(after, tx.now()))
    return [swap.move() for swap in swaps]


def mark(tx: Transaction, items: Iterable[Buffer], values: Mapping[str, Any]) -> None:
    """Set what is no matter of states of buffers."""
    for item in items:
        row = tx.tables.buffers[_key(item)]
        tx.put(tx.tables.buffers, _key(item), replace(row, item=replace(row.item, **values)))


def renew(tx: Transaction, items: Iterable[Buffer]) -> None:
    """Count one generation more: the next keys are none of those that were made before."""
    for item in items:
        mark(tx, [item], {"generation": tx.tables.buffers[_key(item)].item.generation + 1})


def remove(tx: Transaction, items: Iterable[Buffer]) -> None:
    """Delete buffers: they are their lender's own again, or gone with it."""
    for item in items:
        tx.delete(tx.tables.buffers, _key(item))


def add_allocation(tx: Transaction, uuid: str, _operation_id: str, asked: Mapping[str, Any]) -> None:
    """Add an allocation; `asked` is what the request says of consumer, host and guarantee."""
    tx.put(tx.tables.remote_allocations, uuid, RemoteAllocation(uuid, **asked))


def allocation(tx: Transaction, uuid: str) -> RemoteAllocation | None:
    """Return an allocation, None when there is none."""
    return tx.tables.remote_allocations.get(uuid)


def allocations(tx: Transaction) -> list[RemoteAllocation]:
    """Return all allocations by UUID."""
    return [tx.tables.remote_allocations[uuid] for uuid in sorted(tx.tables.remote_allocations)]


def unguaranteed(tx: Transaction) -> set[str]:
    """Return the allocations that may be taken back, by UUID."""
    return {uuid for uuid, item in tx.tables.remote_allocations.items() if not item.guaranteed}


def drop_empty(tx: Transaction, uuids: Iterable[str]) -> None:
    """Delete those of the allocations that no buffer points at any more."""
    held = {row.item.allocation_uuid for row in tx.tables.buffers.values()}
    for uuid in sorted(uuids):
        if uuid in tx.tables.remote_allocations and uuid not in held:
            tx.delete(tx.tables.remote_allocations, uuid)


def _key(item: Buffer) -> tuple[str, int]:
    return item.incarnation, item.index


def _all(tx: Transaction) -> list[Buffer]:
    lenders = tx.tables.lenders
    items = [
        replace(row.item, kind=lenders[row.item.lender].kind, size_mib=lenders[row.item.lender].buffer_mib)
        for row in tx.tables.buffers.values()
    ]
    return sorted(
        items, key=lambda item: (item.lender, lenders[item.lender].incarnation == item.incarnation, item.index)
    )
