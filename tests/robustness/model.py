"""The model: what replaying the journal makes of every slice. Written apart from the code that it judges.

It knows three things: a slice changes only from the state it is in; an owner comes only to a FREE slice; and an owner
leaves only by a release, never by another one's assignment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.robustness.history import Entry, Place

OWNED = frozenset({"assigning", "online", "releasing"})


@dataclass(frozen=True, slots=True)
class Broken:
    """A violated promise. `operation_id`: the operation that it is about, when there is one."""

    code: str
    detail: str
    operation_id: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """A slice in the model."""

    state: str
    host: str | None = None
    allocation: str | None = None


def replay(journal: Iterable[Entry]) -> tuple[dict[Place, State], list[Broken]]:
    """Return the slices after all moves of the journal, and every move that the model does not allow."""
    slices: dict[Place, State] = {}
    assigned: dict[str, str] = {}
    broken: list[Broken] = []
    for entry in journal:
        for move in entry.effect.get("moves", ()):
            if move["to"] == "assigning" and assigned.setdefault(move["allocation"], entry.operation_id) != (
                entry.operation_id
            ):
                detail = f"allocation {move['allocation']} was assigned by two operations"
                broken.append(Broken("duplicate", detail, entry.operation_id))
            for index in move["indexes"]:
                place = (move["pool"], index)
                broken += _judge(entry, place, slices.get(place), move)
                slices[place] = State(move["to"], move["host"], move["allocation"])
    return slices, broken


def _judge(entry: Entry, place: Place, now: State | None, move: Mapping[str, Any]) -> Iterable[Broken]:
    where = f"{entry.kind} {entry.operation_id} (sequence {entry.sequence}) on slice {place[0]}/{place[1]}"
    if now is not None and now.state in OWNED and move["to"] in OWNED and now.allocation != move["allocation"]:
        detail = f"{where}: given to {move['allocation']} while {now.allocation} of {now.host} owned it"
        yield Broken("double_owner", detail, entry.operation_id)
        return
    if now is not None and move["from"] in OWNED and now.state not in OWNED:
        yield Broken("duplicate", f"{where}: taken from an owner who had given it back already", entry.operation_id)
    elif (None if now is None else now.state) != move["from"]:
        detail = f"{where}: moves from {move['from']}, but it was {now.state if now else 'unknown'}"
        yield Broken("replay", detail, entry.operation_id)
    if move["to"] in OWNED and not (move["host"] and move["allocation"]):
        yield Broken("replay", f"{where}: {move['to']} without an owner", entry.operation_id)
    if move["to"] == "free" and move["from"] not in (None, "sanitizing"):
        yield Broken("replay", f"{where}: free without having been sanitised", entry.operation_id)
