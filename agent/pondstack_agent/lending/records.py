"""Lends and reclaims on disk: what was asked for, how far it came. A restarted agent goes on with them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from pondstack.domain.errors import Conflict, OperationMismatch
from pondstack_agent.records import Records


class Verb(StrEnum):
    """What the host does."""

    LEND = "lend"
    RECLAIM = "reclaim"


class State(StrEnum):
    """PENDING (memory is registered, or taken back) -> TELLING (the controller has to hear of it) -> DONE."""

    PENDING = "pending"
    TELLING = "telling"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation. `mib`: of a lend, lent in all at its end; of a reclaim, to be taken back.

    `from_mib`: what was lent when it began, `ended_mib` when it had ended (None: it has not). `at`, `ends_at`: seconds
    of the agent's clock, `ends_at` a reclaim's deadline.
    """

    operation_id: str
    verb: str
    mib: int
    at: float
    kind: str = ""
    incarnation: str = ""
    from_mib: int = 0
    ends_at: float = 0.0
    state: str = State.PENDING
    reason: str = ""
    ended_mib: int | None = None

    @property
    def target_mib(self) -> int:
        """What is lent in all when it has fully succeeded."""
        return self.mib if self.verb == Verb.LEND else max(self.from_mib - self.mib, 0)

    def to_wire(self, lent_mib: int) -> dict[str, Any]:
        """Return its progress; `lent_mib`: what is lent now."""
        lent_mib = lent_mib if self.ended_mib is None else self.ended_mib
        done = lent_mib if self.verb == Verb.LEND else self.from_mib - lent_mib
        names = ("operation_id", "verb", "state", "mib", "reason")
        return {name: str(getattr(self, name)) if name != "mib" else self.mib for name in names} | {"done_mib": done}


class Entries:
    """What this agent remembers of lends and reclaims, by operation id."""

    def __init__(self, records: Records, clock: Callable[[], float]) -> None:
        self._records, self.clock = records, clock

    def put(self, entry: Entry, **changes: Any) -> Entry:
        """Write one down."""
        entry = replace(entry, **changes)
        self._records.put(entry.operation_id, asdict(entry))
        return entry

    def begin(self, entry: Entry) -> Entry:
        """Write a new one down, or return the one with its id.

        Raises OperationMismatch when the id was used for another request, Conflict while another one is under way.
        """
        known = self._records.get(entry.operation_id)
        if known is not None:
            found = Entry(**known)
            if (found.verb, found.mib, found.kind) != (entry.verb, entry.mib, entry.kind):
                raise OperationMismatch(f"operation {entry.operation_id} was used for another request; make a new id")
            return found
        for other in self.unfinished():
            raise Conflict(f"{other.verb} {other.operation_id} is under way on this host; wait for its end")
        return self.put(entry)

    def get(self, operation_id: str) -> Entry | None:
        """Return one as it is now."""
        found = self._records.get(operation_id)
        return Entry(**found) if found else None

    def all(self) -> list[Entry]:
        """Return all, the newest last."""
        return sorted((Entry(**record) for record in self._records.all().values()), key=lambda item: item.at)

    def unfinished(self) -> list[Entry]:
        """Return those that are under way."""
        return [entry for entry in self.all() if entry.state != State.DONE]

    def prune(self, keep_seconds: float) -> None:
        """Forget what ended so long ago that nobody repeats it."""
        for entry in self.all():
            if entry.state == State.DONE and self.clock() - entry.at > keep_seconds:
                self._records.remove(entry.operation_id)
