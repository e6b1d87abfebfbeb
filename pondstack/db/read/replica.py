"""A stand-by's view of the rack: slices and allocations replayed from the journal, the few other rows read afresh.

The journal is what grows with the rack's life and the slices what grows with its size; neither is read whole again but
at the start, after a pruned stretch, and when something does not fit.
"""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import Leadership, OperationRow, table
from pondstack.db.read.rack import read_rack, read_rest
from pondstack.db.store import journal
from pondstack.db.store.leadership import ROW
from pondstack.domain.model import Allocation, Extent, Slice
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import AgedAllocation, AgedSlice, RackView
from pondstack.ledger.moves import HEIRS, MOVES, Key, OutOfStep, replay

OPERATIONS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Replica:
    """A view, the operation up to which it was followed, the leader's epoch, and the moment that ages count from."""

    view: RackView
    sequence: int
    epoch: int
    moment: float


_LEADERSHIP, _JOURNAL = table(Leadership).c, table(OperationRow).c
_HEAD = select(
    now_seconds().label("moment"),
    _LEADERSHIP.epoch,
    func.coalesce(select(func.max(_JOURNAL.sequence)).scalar_subquery(), 0).label("newest"),
).where(_LEADERSHIP.id == ROW)
"""What a look at the journal begins with, in one statement that is made once: on an idle rack nothing has followed."""


def load(session: Session) -> Replica:
    """Read everything."""
    head = session.execute(_HEAD).one()
    return Replica(read_rack(session), head.newest, head.epoch, head.moment)


def follow(session: Session, last: Replica) -> Replica:
    """Return what follows `last`, by at most OPERATIONS_AT_ONCE operations; raises OutOfStep: load anew."""
    head = session.execute(_HEAD).one()
    rows, moment = _rows_after(session, last.sequence, head), head.moment
    rest = read_rest(session, moment)
    passed = moment - last.moment
    slices = {
        (aged.item.pool_uuid, aged.item.index): AgedSlice(aged.item, aged.age_seconds + passed)
        for aged in last.view.slices
    }
    allocations = {uuid: _older(aged, passed) for uuid, aged in last.view.allocations.items()}
    plain = {key: aged.item for key, aged in slices.items()}
    for row in rows:
        age = max(0.0, moment - row.created_at)
        changed = replay(plain, row.effect.get(MOVES, ()), row.epoch)
        plain |= changed
        slices |= {key: AgedSlice(item, age) for key, item in changed.items()}
        if row.kind == "assign":
            item = _allocation(row.effect, rest)
            allocations[item.uuid] = AgedAllocation(item, age)
        for uuid, heir in row.effect.get(HEIRS, {}).items():
            if uuid in allocations:
                allocations[uuid] = replace(allocations[uuid], item=replace(allocations[uuid].item, heir=heir))
    held = {item.allocation_uuid for item in plain.values()}
    held |= {aged.item.heir for uuid, aged in allocations.items() if uuid in held}
    return Replica(
        replace(
            rest,
            slices=tuple(slices[key] for key in sorted(slices) if key[0] in rest.pools),
            allocations={uuid: aged for uuid, aged in allocations.items() if uuid in held},
        ),
        rows[-1].sequence if rows else last.sequence,
        head.epoch,
        moment,
    )


def differences(warm: RackView, read: RackView) -> list[Key]:
    """Return the slices that two views of one moment tell differently; empty when the replay is right."""

    def plain(view: RackView) -> dict[Key, Slice]:
        return {(aged.item.pool_uuid, aged.item.index): aged.item for aged in view.slices}

    one, other = plain(warm), plain(read)
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def _rows_after(session: Session, sequence: int, head: Row[Any]) -> list[OperationRow]:
    """Return the operations that follow a sequence; raises OutOfStep."""
    if head.newest == sequence:
        return []
    if not journal.continues(session, sequence):
        raise OutOfStep(f"the operations that follow {sequence} were pruned")
    return journal.after(session, sequence, OPERATIONS_AT_ONCE)


def _older(aged: AgedAllocation, seconds: float) -> AgedAllocation:
    unclaimed = None if aged.unclaimed_seconds is None else aged.unclaimed_seconds + seconds
    return replace(aged, age_seconds=aged.age_seconds + seconds, unclaimed_seconds=unclaimed)


def _allocation(effect: dict[str, Any], rest: RackView) -> Allocation:
    asked = effect["asked"]
    pool = rest.pools.get(effect["pool_uuid"])
    item = Allocation(
        effect["allocation_uuid"],
        asked["consumer_uuid"],
        asked["host"],
        effect["pool_uuid"],
        tuple(Extent(item["start"], item["count"]) for item in effect["extents"]),
        guest_mib=asked["guest_mib"],
        project_id=asked["project_id"],
        user_id=asked["user_id"],
        purpose=Purpose(asked.get("purpose", Purpose.GUEST)),
    )
    return replace(item, slice_mib=pool.pool.slice_mib) if pool else item
