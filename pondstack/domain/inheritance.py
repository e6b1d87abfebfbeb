"""Memory that is handed over by reference: a guest moves to another host, its pages stay where they are. Pure.

Zombieland (EuroSys'18), section 5.3. Of lent memory it is each buffer, of pools the allocation with all its slices. A
buffer in use gets an *heir*: an allocation of the host that the guest moves to, which gets a key of its own and reads.
Its owner stays the one whose guest may write. Whichever of the two lets go first leaves the buffer to the other one, in
one transaction: the owner after the guest has moved, or when its host is fenced; the heir when the move failed.

An allocation of pool memory in use gets an heir likewise. Its slices stay its own until its host has let go of them, or
the device has confirmed that it keeps that host out; then they are the heir's, as they are. An heir that reads past the
CPU caches of that host has all of it only where that host has written them back: else the slices are the heir's, but
set aside, and the guest that came with them never runs.
"""

from collections.abc import Collection, Iterable, Sequence

from pondstack.domain.causes import Cause
from pondstack.domain.escrow import Reach
from pondstack.domain.lending import Buffer, LenderKind
from pondstack.domain.model import Slice
from pondstack.domain.states import SliceEvent, SliceState
from pondstack.domain.transitions import LET_GO, Fate

FOR_GOOD = (Cause.DEVICE_FAILED, Cause.HOST_FENCED)
"""Causes for which slices stay aside whoever has them."""


def heritable(item: Buffer, host: str, reach: Reach, silent: Collection[str]) -> bool:
    """Return whether a buffer can be handed over to a host, which has to be able to read it.

    Its lender makes one key more, where it is awake and nobody but the owner has one: what it is told to end of a
    former hand-over must not be this one's. Else that host's key is in escrow, and its data plane is linked.
    """
    if item.state is not SliceState.ONLINE or item.heir is not None or item.leaving or item.lender == host:
        return False
    if item.kind is LenderKind.ZOMBIE:
        return reach.covers(item)
    return item.lender not in silent and not item.escrowed and not item.shared


def to_hand_over(items: Iterable[Buffer], host: str, count: int, reach: Reach, silent: Collection[str]) -> list[Buffer]:
    """Return up to `count` of a consumer's buffers that a host can have, by lender and index."""
    found = [item for item in items if heritable(item, host, reach, silent)]
    return sorted(found, key=lambda item: (item.lender, item.index))[:count]


def inherits(item: Buffer) -> Sequence[SliceEvent]:
    """Return the events by which a buffer that its owner has let go of becomes its heir's, who has its key already."""
    taken = (*LET_GO[item.state], SliceEvent.SANITIZED, SliceEvent.ASSIGN, SliceEvent.ACKNOWLEDGE)
    return (*taken, SliceEvent.RELEASE) if item.leaving else taken


def passed_on(items: Iterable[Slice], *, acknowledged: bool, whole: bool) -> list[Fate]:
    """Return what becomes of slices whose owner does not hold them any more and has an heir.

    `acknowledged`: the heir's host has them online. `whole`: all that the guest wrote is in them; else they are set
    aside, as the heir's. So are those of a device that failed.
    """
    taken: dict[SliceState, list[Slice]] = {}
    aside: dict[tuple[str, Cause, int | None], list[Slice]] = {}
    for item in items:
        if whole and item.cause is not Cause.DEVICE_FAILED:
            taken.setdefault(item.state, []).append(item)
        elif item.cause in FOR_GOOD:
            aside.setdefault((item.reason, item.cause, item.failure), []).append(item)
        else:  # not as silent, either: what is aside for that comes back once its host reports
            lost = Cause.AGENT_LOST.reason(f"host {item.host} let go of it and had not written its CPU caches back")
            aside.setdefault((lost, Cause.AGENT_LOST, None), []).append(item)
    events = (SliceEvent.HAND_OVER, SliceEvent.ACKNOWLEDGE) if acknowledged else (SliceEvent.HAND_OVER,)
    stay = (SliceEvent.HAND_OVER, SliceEvent.QUARANTINE)
    return [
        *(Fate(events, tuple(taken[state])) for state in sorted(taken)),
        *(Fate(stay, tuple(mine), *why) for why, mine in aside.items()),
    ]
