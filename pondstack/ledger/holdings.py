"""What the ledger writes of host slices: how many a host is to hold of a pool for itself, and what keeps it from that.

The slices are allocations like guests' (pondstack.ledger.slices).
"""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, NotFound
from pondstack.domain.host_slices import Holding, HoldingKey
from pondstack.domain.purpose import Purpose
from pondstack.ledger.hosts import check_generation, known_host
from pondstack.ledger.moves import MOVES
from pondstack.ledger.store import Transaction
from pondstack.ledger.transactions import Transactions

MOST_OF_A_REASON = 1000


class Holdings:
    """What all hosts are to hold."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    def find(self) -> list[Holding]:
        """Return all, by host, pool and purpose; those that want none until nothing is left of them."""
        return self._transactions.read(self._store.holdings.find)

    def want(self, key: HoldingKey, count: int, generation: int | None = None, operation_id: str | None = None) -> int:
        """Have a host hold so many slices in all; returns the host's new generation. A repetition gets the same.

        Raises NotFound, HostUnusable (it does not reach the pool), BadRequest (the pool has not so many),
        GenerationConflict.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            return {"generation": self._want(tx, key, count, generation), MOVES: []}

        arguments = {
            "name": key.host,
            "pool_uuid": key.pool_uuid,
            "purpose": str(key.purpose),
            "count": count,
            "generation": generation,
        }
        effect = self._transactions.once(operation_id or str(uuid4()), "want_host_slices", arguments, work)
        now: int = effect["generation"]
        return now

    def _want(self, tx: Transaction, key: HoldingKey, count: int, generation: int | None) -> int:
        known = known_host(self._store, tx, key.host)
        check_generation(known, generation)
        if key.purpose is Purpose.GUEST:
            raise BadRequest("slices for guests are Nova's to ask for; a host holds tier or base slices")
        present = self._store.holdings.get(tx, key)
        if count:
            self._check_pool(tx, key, count)
        if (present.wanted if present else 0) == count:
            return known.generation
        self._store.holdings.put(tx, replace(present or Holding(key.host, key.pool_uuid, key.purpose, 0), wanted=count))
        self._store.hosts.change(tx, key.host, {"generation": known.generation + 1})
        return known.generation + 1

    def _check_pool(self, tx: Transaction, key: HoldingKey, count: int) -> None:
        pool, _host, reached = self._store.pools.reach(tx, key.pool_uuid, key.host)
        if pool is None:
            raise NotFound(f"there is no pool {key.pool_uuid}; list the pools")
        if not reached:
            raise HostUnusable(f"host {key.host} does not reach pool {pool.name}; its agent reports other pools")
        if not 0 <= count <= pool.slices_total:
            raise BadRequest(f"pool {pool.name} has {pool.slices_total} slices; a host cannot hold {count} of them")

    def note(self, holding: Holding, reason: str) -> None:
        """Write down what keeps a host from holding what it is to hold, '' for nothing, where that is new."""
        present = replace(holding, reason=reason[:MOST_OF_A_REASON])
        if present == holding:
            return

        def work(tx: Transaction) -> None:
            known = self._store.holdings.get(tx, holding.key)
            if known is not None:
                self._store.holdings.put(tx, replace(known, reason=present.reason))

        self._transactions.write(work)

    def end(self, key: HoldingKey) -> None:
        """Forget what a host is to hold, if that is nothing, and nothing is left of what it held. Raises Conflict."""

        def work(tx: Transaction) -> None:
            present = self._store.holdings.get(tx, key)
            if present is None:
                return
            held = self._store.allocations.on_node(tx, key.pool_uuid, key.host)
            if present.wanted or key.numbers(held):
                raise Conflict(f"host {key.host} holds {key.purpose} slices of pool {key.pool_uuid}, or is to")
            self._store.holdings.remove(tx, key)

        self._transactions.write(work)
