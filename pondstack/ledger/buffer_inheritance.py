"""The ledger's part in handing buffers over to the host that their consumer moves to (pondstack.domain.inheritance).

Called within a transaction.
"""

from collections.abc import Sequence

from pondstack.domain.causes import Cause
from pondstack.domain.inheritance import inherits
from pondstack.domain.lending import Buffer
from pondstack.ledger.moves import Moves, move
from pondstack.ledger.store import Store, Transaction


def inherit(store: Store, tx: Transaction, items: Sequence[Buffer], *, epoch: int) -> Moves:
    """Have buffers become their heirs', within a transaction in which their owner lets go of them.

    What their lender has lost is the heir's to let go of, too.
    """
    moves: Moves = []
    for item in items:
        heir = store.buffers.allocation(tx, item.heir or "")
        assert heir is not None, f"{item.name}: there is no allocation {item.heir}"
        target = {"host": heir.host, "allocation_uuid": heir.uuid}
        changes = {"heir": None, **({"promised_to": heir.host} if item.promised_to else {})}
        if item.cause is Cause.LENDER_LOST:
            store.buffers.mark(tx, [item], {**changes, **target})
            continue
        reason = wanted_back(item.lender) if item.leaving else ""
        moves += move(store.buffers.swap, tx, [item], *inherits(item), epoch=epoch, reason=reason, **target)
        store.buffers.mark(tx, [item], changes)
        if item.escrowed:
            store.escrow.disclose(tx, [item], heir.host)
    return moves


def disinherit(store: Store, tx: Transaction, items: Sequence[Buffer]) -> None:
    """Have buffers stay their owners', which were to be an heir's.

    Their lender is to end the heir's keys, by a call of a new generation: one of before that comes late ends none. Keys
    in escrow are of one generation, and end once their lender is awake.
    """
    for item in items:
        newer = {} if item.escrowed else {"generation": item.generation + 1}
        store.buffers.mark(tx, [item], {"heir": None, **newer})


def wanted_back(lender: str) -> str:
    """Return why buffers go that their lender takes back."""
    return f"lender {lender} wants it back"
