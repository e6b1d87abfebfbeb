"""What the ledger writes of pools: which devices there are, how many slices each brings, whether it answers."""

from collections.abc import Mapping
from typing import Any

from pondstack.domain.errors import Conflict, NotFound
from pondstack.domain.model import PoolState, Slice
from pondstack.ledger.moves import MOVES, describe
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

        Of a device that grew the new slices are free. Raises Conflict: it shrank, changed its slice size, or the name
        is taken.
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
                self._transactions.note(tx, "register_pool", {"pool_uuid": uuid}, _brought_along(uuid, new))

        self._transactions.write(work)

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
    return {MOVES: [describe(None, Slice(uuid, 0), indexes)]}
