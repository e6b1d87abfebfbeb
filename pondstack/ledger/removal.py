"""What the ledger forgets: hosts and pools that nobody needs any more, each at once and when nothing is left of it.

A host that reports again after its removal is a new one.
"""

from typing import Any

from pondstack.domain import remains
from pondstack.domain.errors import NotFound
from pondstack.domain.host_slices import Holding
from pondstack.domain.states import SliceState
from pondstack.ledger.hosts import known_host
from pondstack.ledger.moves import DIRTY, MOVES, REMOVE_POOL
from pondstack.ledger.store import PoolEntry, Transaction
from pondstack.ledger.transactions import Transactions

REMOVE_HOST = "remove_host"


class Removal:
    """Removes hosts and pools. `down_seconds`: silence after which a host's agent counts as gone."""

    def __init__(self, transactions: Transactions, down_seconds: float) -> None:
        self._transactions = transactions
        self._store = transactions.store
        self._down = down_seconds

    def was_done(self, operation_id: str) -> bool:
        """Return whether a removal of this operation id took effect: a client that lost its answer asks again."""
        kinds = (REMOVE_HOST, REMOVE_POOL)
        return self._transactions.read(
            lambda tx: any(self._store.journal.recall(tx, operation_id, kind) for kind in kinds)
        )

    def check_host(self, name: str) -> None:
        """Raise NotFound, or NotEmpty with the list of what is left of a host; change nothing."""
        self._transactions.read(lambda tx: self._refuse_host(tx, name))

    def remove_host(self, name: str, operation_id: str) -> None:
        """Forget a host, with what it reported, reached and was as a lender. Raises as check_host."""

        def work(tx: Transaction) -> dict[str, Any]:
            self._refuse_host(tx, name)
            self._store.buffers.remove_lender(tx, name)
            self._store.lends.remove(tx, name)
            self._store.escrow.remove_borrower(tx, name)
            for item in self._holdings(tx, host=name):
                self._store.holdings.remove(tx, item.key)
            self._store.hosts.remove(tx, name)
            return {"name": name, MOVES: []}

        self._transactions.once(operation_id, REMOVE_HOST, {"name": name}, work)

    def check_pool(self, uuid: str) -> str:
        """Return a pool's name; raises NotFound, or NotEmpty with the list of what is left of it. Changes nothing."""
        return self._transactions.read(lambda tx: self._refuse_pool(tx, uuid)).name

    def remove_pool(self, uuid: str, operation_id: str) -> None:
        """Forget a pool with all its slices. Raises as check_pool.

        The journal keeps for good which of them were aside and may hold what a guest wrote: if the device comes back,
        they are sanitised before anybody gets them (pondstack.ledger.pools).
        """

        def work(tx: Transaction) -> dict[str, Any]:
            pool = self._refuse_pool(tx, uuid)
            aside = [item.index for item in self._store.slices.of_pool(tx, uuid) if item.state is not SliceState.FREE]
            for item in self._holdings(tx, pool_uuid=uuid):
                self._store.holdings.remove(tx, item.key)
            self._store.pools.remove(tx, uuid)
            return {"uuid": uuid, "name": pool.name, "slice_mib": pool.slice_mib, DIRTY: aside, MOVES: []}

        self._transactions.once(operation_id, REMOVE_POOL, {"uuid": uuid}, work)

    def _refuse_host(self, tx: Transaction, name: str) -> None:
        known, buffers = known_host(self._store, tx, name), self._store.buffers
        left = remains.of_host(
            self._store.slices.of_host(tx, name),
            buffers.of_lender(tx, name),
            buffers.of_borrower(tx, name),
            [item for item in buffers.everything(tx) if item.promised_to == name],
            self._holdings(tx, host=name),
        )
        if heirs := len(self._store.allocations.of_heirs(tx, name)):
            left.append(f"{heirs} allocations that are being handed over to it")
        if known.silent_seconds <= self._down:
            # It would be back with its next report.
            left.append(f"its agent, which reported {known.silent_seconds:.1f} s ago: stop it")
        remains.refuse(f"host {name}", left)

    def _refuse_pool(self, tx: Transaction, uuid: str) -> PoolEntry:
        known = self._store.pools.get(tx, uuid)
        if known is None:
            raise NotFound(f"there is no pool {uuid}; list the pools")
        left = remains.of_pool(self._store.slices.of_pool(tx, uuid), self._holdings(tx, pool_uuid=uuid))
        remains.refuse(f"pool {known.name}", left)
        return known

    def _holdings(self, tx: Transaction, **wanted: str) -> list[Holding]:
        found = self._store.holdings.find(tx)
        return [item for item in found if all(getattr(item, name) == value for name, value in wanted.items())]
