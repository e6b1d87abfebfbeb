"""What the ledger writes of pools: which devices there are, how many slices each brings, whether it answers."""

from collections.abc import Mapping
from typing import Any

from pondstack.domain.causes import Cause
from pondstack.domain.errors import Conflict, NotFound
from pondstack.domain.model import PoolState, Slice
from pondstack.domain.states import SliceEvent
from pondstack.ledger.moves import DIRTY, MOVES, REMOVE_POOL, Moves, describe, move
from pondstack.ledger.store import Transaction
from pondstack.ledger.transactions import Transactions


class Pools:
    """All pool devices of the rack."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    def register(
        self,
        *,
        uuid: str,
        name: str,
        serial: str,
        driver: str,
        address: Mapping[str, Any],
        slice_mib: int,
        slices_total: int,
    ) -> None:
        """Add a pool with all its slices free, or refresh name, driver and address of a known one; it is UP.

        Of a device that grew the new slices are free. Of one whose pool was removed, what was aside then is sanitised
        first. Raises Conflict: it shrank, changed its slice size, or the name is taken.
        """
        values = {"name": name, "driver": driver, "address": dict(address), "slices_total": slices_total}

        def work(tx: Transaction) -> None:
            other = self._store.pools.named(tx, name)
            if other not in (None, uuid):
                raise Conflict(
                    f"the pool name {name} belongs to another device ({other}); choose another in pool_devices"
                )
            known = self._store.pools.get(tx, uuid)
            if known is None:
                self._store.pools.add(tx, uuid, serial, slice_mib, values)
            elif known.slice_mib != slice_mib or slices_total < known.slices_total:
                raise Conflict(
                    f"device {serial} now has {slices_total} slices of {slice_mib} MiB, the ledger knows "
                    f"{known.slices_total} of {known.slice_mib} MiB: retire the pool first"
                )
            else:
                self._store.pools.change(tx, uuid, {**values, "state": PoolState.UP})
            new = range(known.slices_total if known else 0, slices_total)
            if new:
                self._store.slices.add(tx, uuid, new)
                moves = [_brought_along(uuid, new), *self._sanitize(tx, uuid, [] if known else self._dirty(tx, uuid))]
                self._transactions.note(tx, "register_pool", {"pool_uuid": uuid}, {MOVES: moves})

        self._transactions.write(work)

    def _dirty(self, tx: Transaction, uuid: str) -> list[int]:
        """Return the slices that were aside when the pool was removed last; all, when its slices had another size."""
        removed = [effect for effect in self._store.journal.of_kind(tx, REMOVE_POOL) if effect["uuid"] == uuid]
        pool = self._store.pools.get(tx, uuid)
        if not removed or pool is None or not removed[-1][DIRTY]:
            return []
        same = removed[-1]["slice_mib"] == pool.slice_mib
        return [index for index in range(pool.slices_total) if not same or index in removed[-1][DIRTY]]

    def _sanitize(self, tx: Transaction, uuid: str, indexes: list[int]) -> Moves:
        items = self._store.slices.at(tx, uuid, indexes) if indexes else []
        cause, events = Cause.SANITIZE_FAILED, (SliceEvent.QUARANTINE, SliceEvent.AUDIT)
        why = {"cause": cause, "reason": cause.reason("its pool was removed before it was zeroed")}
        return move(self._store.slices.swap, tx, items, *events, epoch=self._transactions.epoch, **why)

    def set_state(self, uuid: str, state: PoolState) -> bool:
        """Write down a pool's health; returns whether it changed. Raises NotFound."""

        def work(tx: Transaction) -> bool:
            known = self._store.pools.get(tx, uuid)
            if known is None:
                raise NotFound(f"there is no pool {uuid}; list the pools")
            if known.state is state:
                return False
            self._store.pools.change_state(tx, uuid, state)
            return True

        return self._transactions.write(work)


def _brought_along(uuid: str, indexes: range) -> dict[str, Any]:
    return describe(None, Slice(uuid, 0), indexes)
