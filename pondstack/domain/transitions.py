"""The ledger's rules as pure functions: what an event makes of a slice, and what must hold over the whole ledger.

A slice has one owner at most; nothing is handed on before its release was confirmed and it was sanitised; totals are
conserved; a VM's slices come from one device (Pond section 4.2).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pondstack.domain.causes import Cause, stored
from pondstack.domain.errors import IllegalTransition
from pondstack.domain.lending import Buffer
from pondstack.domain.model import Allocation, Pool, Slice, indexes_of
from pondstack.domain.states import OWNED, SliceEvent, SliceState, next_state

Memory = TypeVar("Memory", Slice, Buffer)
"""What somebody owns: both kinds go through the same states by the same rules."""

LET_GO = {
    SliceState.ASSIGNING: (SliceEvent.RELEASE, SliceEvent.CONFIRM),
    SliceState.ONLINE: (SliceEvent.RELEASE, SliceEvent.CONFIRM),
    SliceState.RELEASING: (SliceEvent.CONFIRM,),
    SliceState.QUARANTINED: (SliceEvent.AUDIT,),
}
"""What the host's word "I do not hold it" makes of a slice of the allocation, unless its device failed."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant: a stable code, what it is about, and what was found."""

    code: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Fate:
    """Slices that take the same events. `reason`, `cause` and `failure`: of those that stay aside."""

    events: tuple[SliceEvent, ...]
    items: tuple[Slice, ...]
    reason: str = ""
    cause: Cause | None = None
    failure: int | None = None


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The whole ledger at one moment."""

    pools: Mapping[str, Pool]
    slices: tuple[Slice, ...]
    allocations: Mapping[str, Allocation]


def transition(
    item: Memory,
    event: SliceEvent,
    *,
    epoch: int,
    host: str | None = None,
    allocation_uuid: str | None = None,
    reason: str = "",
    cause: Cause | None = None,
) -> Memory:
    """Return the slice or buffer after `event`.

    ASSIGN and HAND_OVER name the new owner; a quarantine may name who holds a free one.

    Raises IllegalTransition, ValueError (an assignment without owner, a quarantine without a cause or whose reason does
    not begin with it).
    """
    state = next_state(item.state, event)
    if event is SliceEvent.REINSTATE and not _reinstatable(item):
        raise IllegalTransition(f"{item.name} was set aside for another reason than a silent host's")
    if event in (SliceEvent.ASSIGN, SliceEvent.HAND_OVER):
        if not host or not allocation_uuid:
            raise ValueError("what is assigned needs a host and an allocation")
        owned = replace(item, state=state, host=host, allocation_uuid=allocation_uuid)
        return replace(owned, epoch=epoch, reason="", cause=None)
    if event is SliceEvent.QUARANTINE:
        if cause is None or stored(state, None, None, reason).cause is not cause:
            raise ValueError(f"the reason of a quarantine begins with its cause; {cause} has {reason!r}")
        kept = item.state in OWNED
        return replace(
            item,
            state=state,
            host=item.host if kept else host,
            allocation_uuid=item.allocation_uuid if kept else allocation_uuid,
            epoch=epoch,
            reason=reason,
            cause=cause,
        )
    if state in OWNED:
        return replace(item, state=state, epoch=epoch, reason=reason, cause=None)
    return replace(item, state=state, host=None, allocation_uuid=None, epoch=epoch, reason=reason, cause=None)


def reinstatable(items: Sequence[Slice]) -> list[Slice]:
    """Return what of an allocation's slices goes back ONLINE once it is claimed again; nothing unless all of it can."""
    back = [item for item in items if item.state is not SliceState.ONLINE]
    return back if all(_reinstatable(item) for item in back) else []


def _reinstatable(item: Slice | Buffer) -> bool:
    if item.state is SliceState.QUARANTINED:
        return bool(item.cause is Cause.AGENT_DOWN and item.host and item.allocation_uuid)
    return item.state is SliceState.RELEASING


def fates(items: Iterable[Slice], not_zero: Collection[int] = ()) -> list[Fate]:
    """Return what becomes of an allocation's slices once their host has said "I do not hold it".

    `not_zero`: by index, those that it found to have somebody's bytes before their first use.
    """
    unclean: dict[SliceState, list[Slice]] = {}
    free: dict[SliceState, list[Slice]] = {}
    aside: dict[tuple[str, int | None], list[Slice]] = {}
    for item in items:
        if item.cause is Cause.DEVICE_FAILED:
            aside.setdefault((item.reason, item.failure), []).append(item)
        elif item.index in not_zero:
            unclean.setdefault(item.state, []).append(item)
        else:
            free.setdefault(item.state, []).append(item)
    stay = (SliceEvent.AUDIT, SliceEvent.QUARANTINE)
    failed = Cause.SANITIZE_FAILED
    found = failed.reason("its last host found it not zero before its first use")
    return [
        *(Fate(LET_GO[state], tuple(free[state])) for state in sorted(free)),
        *(
            Fate((*LET_GO[state], SliceEvent.QUARANTINE), tuple(unclean[state]), found, failed)
            for state in sorted(unclean)
        ),
        *(Fate(stay, tuple(mine), reason, Cause.DEVICE_FAILED, failure) for (reason, failure), mine in aside.items()),
    ]


def violations(view: LedgerView) -> list[Violation]:
    """Return every broken invariant; an empty list is a sound ledger."""
    return [*_slice_violations(view), *_total_violations(view), *_allocation_violations(view)]


def _slice_violations(view: LedgerView) -> Iterable[Violation]:
    seen: set[tuple[str, int]] = set()
    for item in view.slices:
        subject = item.name
        if (item.pool_uuid, item.index) in seen:
            yield Violation("slice_twice", subject, "the ledger lists it twice")
        seen.add((item.pool_uuid, item.index))
        if item.state in OWNED and not (item.host and item.allocation_uuid):
            yield Violation("owner_missing", subject, f"it is {item.state} without an owner")
        if item.state in (SliceState.FREE, SliceState.SANITIZING) and (item.host or item.allocation_uuid):
            yield Violation("owner_left", subject, f"it is {item.state} and still names {item.host}")
        if item.state is SliceState.QUARANTINED and item.cause is None:
            yield Violation("cause_missing", subject, "it is quarantined without a cause")
        if item.state in OWNED and item.allocation_uuid not in view.allocations:
            yield Violation("owner_unknown", subject, f"its allocation {item.allocation_uuid} does not exist")


def _total_violations(view: LedgerView) -> Iterable[Violation]:
    indexes: dict[str, list[int]] = {uuid: [] for uuid in view.pools}
    for item in view.slices:
        if item.pool_uuid not in indexes:
            yield Violation("pool_unknown", item.name, "its pool does not exist")
        else:
            indexes[item.pool_uuid].append(item.index)
    for uuid, found in indexes.items():
        if sorted(set(found)) != list(range(view.pools[uuid].slices_total)):
            detail = f"{len(found)} slices are listed of {view.pools[uuid].slices_total}"
            yield Violation("total_changed", f"pool {uuid}", detail)


def _allocation_violations(view: LedgerView) -> Iterable[Violation]:
    pointing: dict[str, list[Slice]] = {}
    for item in view.slices:
        if item.allocation_uuid is not None:
            pointing.setdefault(item.allocation_uuid, []).append(item)
    owners = {item.heir: item for item in view.allocations.values() if item.heir is not None}
    for uuid, allocation in view.allocations.items():
        subject = f"allocation {uuid}"
        mine = pointing.get(uuid, [])
        if allocation.heir is not None and allocation.heir not in view.allocations:
            yield Violation("heir_missing", subject, f"it is to be handed over to allocation {allocation.heir}")
        if {item.pool_uuid for item in mine} - {allocation.pool_uuid}:
            yield Violation("several_devices", subject, "its slices come from more than one device")
        # An owner and its heir say the same, and each slice is one's.
        other = owners[uuid].uuid if uuid in owners else allocation.heir
        said = sorted(item.index for item in (*mine, *pointing.get(other or "", ())))
        if sorted(indexes_of(allocation.extents)) != said:
            detail = f"it says {sorted(indexes_of(allocation.extents))}, slices say {said}"
            yield Violation("extents_differ", subject, detail)
        if {item.host for item in mine} - {allocation.host}:
            yield Violation("several_hosts", subject, "its slices name another host")
