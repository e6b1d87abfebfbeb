"""What the ledger writes of keys in escrow (pondstack.domain.escrow). Who gets one of them is written with the loan.

A buffer is noted as escrowed before its lender makes the first of these keys, and until it has ended all of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from pondstack.domain.escrow import EscrowedKey, Link, wants_escrow
from pondstack.domain.lending import IN_USE, Buffer
from pondstack.domain.states import SliceState
from pondstack.ledger.store import Store, Transaction
from pondstack.ledger.transactions import Transactions

AT_A_TIME = 200
"""So many keys are read to be sealed anew at once."""


class Escrow:
    """The keys of all lenders. Each method is one transaction. `down_seconds`: as Loans."""

    def __init__(self, transactions: Transactions, down_seconds: float) -> None:
        self._transactions = transactions
        self._store = transactions.store
        self._down = down_seconds

    def links(self) -> dict[str, frozenset[Link]]:
        """Return whom the hosts are linked to that take part, by host; a former agent does not say it."""

        def work(tx: Transaction) -> dict[str, frozenset[Link]]:
            buffers = self._store.buffers
            told, present = buffers.links(tx), buffers.borrowers(tx, self._down)
            return {host: told[host] for host in present if host in told}

        return self._transactions.read(work)

    def silent(self) -> set[str]:
        """Return the hosts whose agents are silent: a lender among them may sleep."""
        return self._transactions.read(lambda tx: self._store.buffers.silent(tx, self._down))

    def of_lender(self, incarnation: str) -> list[EscrowedKey]:
        """Return the keys of one life of a lender, without what is sealed."""
        return self._transactions.read(lambda tx: self._store.escrow.of_lender(tx, incarnation))

    def begin(self, host: str, incarnation: str, indexes: Iterable[int]) -> int:
        """Note, before they are made, that keys of free buffers will live; they have a generation of their own.

        Returns of how many buffers.
        """
        wanted = set(indexes)

        def work(tx: Transaction) -> int:
            mine = self._store.buffers.of_lender(tx, host)
            new = [i for i in mine if i.incarnation == incarnation and i.index in wanted and wants_escrow(i)]
            new = [item for item in new if not item.escrowed]
            for generation in sorted({item.generation for item in new}):
                same = [item for item in new if item.generation == generation]
                self._store.buffers.mark(tx, same, {"escrowed": True, "generation": generation + 1})
            self._store.escrow.remove(tx, new)
            return len(new)

        return self._transactions.write(work)

    def deposit(self, host: str, keys: Sequence[EscrowedKey]) -> int:
        """Put keys of buffers of a lender in escrow; returns how many.

        What is of another generation by now, or has been disclosed to somebody, is left out.
        """

        def work(tx: Transaction) -> int:
            mine = {(item.incarnation, item.index): item for item in self._store.buffers.of_lender(tx, host)}
            good = [key for key in keys if key.place in mine and _takes(mine[key.place], key)]
            self._store.escrow.put(tx, good)
            return len(good)

        return self._transactions.write(work)

    def end(self, host: str, incarnation: str, generations: Mapping[int, int], *, used: bool = False) -> int:
        """Note that no key of buffers is in escrow any more: their lender is awake, and has ended those nobody uses.

        Only of those that are still of `generations`, by index, and free: their lender has ended all keys. `used`: only
        of those in use, of which it has ended all but the owner's. Returns how many.
        """
        states = IN_USE if used else (SliceState.FREE,)

        def work(tx: Transaction) -> int:
            mine = [item for item in self._store.buffers.of_lender(tx, host) if item.incarnation == incarnation]
            done = [item for item in mine if generations.get(item.index) == item.generation and item.heir is None]
            done = [item for item in done if item.state in states]
            forget_keys(self._store, tx, done)
            return len(done)

        return self._transactions.write(work)

    def disclosed(self, borrower: str, incarnation: str, indexes: Collection[int]) -> list[EscrowedKey]:
        """Return the keys of buffers that a borrower has got; those in escrow for it only, and of no use, are none."""

        def work(tx: Transaction) -> list[EscrowedKey]:
            buffers = self._store.buffers
            mine = [*buffers.of_borrower(tx, borrower), *buffers.of_heirs(tx, borrower)]
            held = {(item.incarnation, item.index): item.generation for item in mine}
            found = self._store.escrow.sealed(tx, borrower, incarnation, indexes)
            return [key for key in found if held.get(key.place) == key.generation]

        return self._transactions.read(work)

    def sealed_otherwise(self, sealing_key: str) -> list[EscrowedKey]:
        """Return some keys that are sealed with another key than this one."""
        return self._transactions.read(lambda tx: self._store.escrow.sealed_otherwise(tx, sealing_key, AT_A_TIME))

    def reseal(self, keys: Sequence[EscrowedKey]) -> int:
        """Write keys down that were sealed anew; returns how many: what has changed since it was read is left out."""

        def work(tx: Transaction) -> int:
            done = 0
            for key in keys:
                found = self._store.escrow.sealed(tx, key.borrower, key.incarnation, [key.index])
                if found and found[0].generation == key.generation:
                    self._store.escrow.put(tx, [key])
                    done += 1
            return done

        return self._transactions.write(work)

    def remove_orphans(self) -> int:
        """Forget keys of buffers that are not there any more; returns how many."""
        return self._transactions.write(lambda tx: self._store.escrow.remove_orphans(tx))


def forget_keys(store: Store, tx: Transaction, items: Iterable[Buffer]) -> None:
    """Note, within a transaction, that no key of buffers is in escrow, or left to the borrower that it was told."""
    mine = [item for item in items if item.escrowed or item.shared or item.promised_to is not None]
    store.buffers.mark(tx, mine, {"escrowed": False, "shared": False, "promised_to": None})
    store.escrow.remove(tx, mine)


def _takes(item: Buffer, key: EscrowedKey) -> bool:
    return item.escrowed and wants_escrow(item) and item.generation == key.generation
