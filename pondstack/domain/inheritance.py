"""Buffers that are handed over by reference: a guest moves to another host, its pages stay with their lenders. Pure.

Zombieland (EuroSys'18), section 5.3. A buffer in use gets an *heir*: an allocation of the host that the guest moves to,
which gets a key of its own and reads. Its owner stays the one whose guest may write. Whichever of the two lets go first
leaves the buffer to the other one, in one transaction: the owner after the guest has moved, or when its host is fenced;
the heir when the move failed.
"""

from collections.abc import Collection, Iterable, Sequence

from pondstack.domain.escrow import Reach
from pondstack.domain.lending import Buffer, LenderKind
from pondstack.domain.states import SliceEvent, SliceState
from pondstack.domain.transitions import LET_GO


def heritable(item: Buffer, host: str, reach: Reach, silent: Collection[str]) -> bool:
    """Return whether a buffer can be handed over to a host, which has to be able to read it.

    Its lender makes one key more, where it is awake; else that host's key is in escrow, and its data plane is linked.
    """
    if item.state is not SliceState.ONLINE or item.heir is not None or item.leaving or item.lender == host:
        return False
    if item.kind is LenderKind.ZOMBIE:
        return reach.covers(item)
    return item.lender not in silent and not item.escrowed


def to_hand_over(items: Iterable[Buffer], host: str, count: int, reach: Reach, silent: Collection[str]) -> list[Buffer]:
    """Return up to `count` of a consumer's buffers that a host can have, by lender and index."""
    found = [item for item in items if heritable(item, host, reach, silent)]
    return sorted(found, key=lambda item: (item.lender, item.index))[:count]


def inherits(item: Buffer) -> Sequence[SliceEvent]:
    """Return the events by which a buffer that its owner has let go of becomes its heir's, who has its key already."""
    taken = (*LET_GO[item.state], SliceEvent.SANITIZED, SliceEvent.ASSIGN, SliceEvent.ACKNOWLEDGE)
    return (*taken, SliceEvent.RELEASE) if item.leaving else taken
