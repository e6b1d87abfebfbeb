"""What the ledger writes of loans: the buffers that a consumer has on a host, as one (see pondstack.ledger.buffers)."""

from collections.abc import Sequence
from typing import Any

from pondstack.domain.lending import IN_USE
from pondstack.domain.states import SliceEvent
from pondstack.ledger.moves import BUFFER_MOVES, MOVES, move
from pondstack.ledger.store import Store, Transaction
from pondstack.ledger.transactions import Transactions


class Loans:
    """All loans. Each method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    def ask_back(self, allocation_uuid: str, reason: str, only: Sequence[tuple[str, int]] | None = None) -> int:
        """What is in use of a loan becomes RELEASING, all of it or `only` these (incarnation, index); how many are.

        No memory is handed on by it: its borrower is asked to let go, and its key dies, as of any other.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            mine = [item for item in self._store.buffers.of_allocation(tx, allocation_uuid) if item.state in IN_USE]
            found = [item for item in mine if only is None or (item.incarnation, item.index) in set(only)]
            epoch = self._transactions.epoch
            moves = move(self._store.buffers.swap, tx, found, SliceEvent.RELEASE, epoch=epoch, reason=reason)
            return {"buffers": [item.index for item in found], BUFFER_MOVES: moves, MOVES: []}

        return len(self._transactions.journal("ask_back", {"reason": reason}, work)["buffers"])

    def mark_claims(self, claimed: Sequence[str], unclaimed: Sequence[str]) -> None:
        """Note which loans Placement backs with a claim; an unclaimed one keeps the moment of its first note."""
        if claimed or unclaimed:
            self._transactions.write(lambda tx: self._store.buffers.mark_claims(tx, claimed, unclaimed))


def guaranteed_mib(store: Store, tx: Transaction, consumer_uuid: str, host: str) -> int:
    """Return how much a consumer has guaranteed on a host, in MiB, without what is on its way back."""
    mine = {
        item.uuid
        for item in store.buffers.allocations(tx)
        if item.guaranteed and (item.consumer_uuid, item.host) == (consumer_uuid, host)
    }
    held = store.buffers.of_borrower(tx, host) if mine else []
    return sum(item.size_mib for item in held if item.state in IN_USE and item.allocation_uuid in mine)
