"""What an operation does to buffers, for whoever keeps them, and as the journal keeps it. Pure.

A move is {"lender", "indexes", "from", "to", "host", "allocation", "reason", "cause"}, as with slices (slice_moves.py);
a follower reads buffers anew instead of replaying them, so that this is for the eyes of operators.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from pondstack.domain.causes import Cause
from pondstack.domain.lending import Buffer
from pondstack.domain.states import SliceEvent, SliceState
from pondstack.domain.transitions import transition

BUFFER_MOVES = "buffer_moves"


class BufferSwap(NamedTuple):
    """Buffers of one lender that leave one state and owner together; `after`, of index 0, stands for each of them."""

    state: SliceState
    owner: str | None
    after: Buffer
    indexes: list[int]
    assigned: bool
    """Whether each of them has an owner more: its generation grows."""

    def move(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        return {
            "lender": self.after.lender,
            "indexes": sorted(self.indexes),
            "from": str(self.state),
            "to": str(self.after.state),
            "host": self.after.host,
            "allocation": self.after.allocation_uuid,
            "reason": self.after.reason,
            "cause": self.after.cause and str(self.after.cause),
        }


def plan(
    items: Iterable[Buffer],
    *events: SliceEvent,
    epoch: int,
    host: str | None = None,
    allocation_uuid: str | None = None,
    reason: str = "",
    cause: Cause | None = None,
) -> list[BufferSwap]:
    """Return what takes buffers through `events`, as pondstack.ledger.slice_moves.plan; raises IllegalTransition."""
    groups: dict[tuple[SliceState, str | None, Buffer], list[int]] = {}
    for item in items:
        after = item
        for event in events:
            after = transition(
                after, event, epoch=epoch, host=host, allocation_uuid=allocation_uuid, reason=reason[:1000], cause=cause
            )
        pattern = replace(after, index=0, offset_mib=0, generation=0, promised_to=None, leaving=False, epoch=epoch)
        groups.setdefault((item.state, item.allocation_uuid, pattern), []).append(item.index)
    assigned = SliceEvent.ASSIGN in events
    return [BufferSwap(*group, indexes, assigned) for group, indexes in groups.items()]
