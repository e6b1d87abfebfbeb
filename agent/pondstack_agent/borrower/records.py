"""What a borrower has, on disk: keys and tickets, so that a restarted agent finds its buffers. Files of mode 0600."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pondstack_agent.records import Records
from pondstack_rdma.model import Key

Buffers = Mapping[int, "BorrowedBuffer"]


@dataclass(frozen=True, slots=True)
class BorrowedBuffer:
    """One buffer of an allocation. `leaving`: it is being given back."""

    allocation_uuid: str
    key: Key
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """What is borrowed of one incarnation of a lender. `ticket`: as the wire has it, {} once nothing is held.

    `released`: by buffer, the highest key that was given back: a late `prepare` does not bring it again. `left`: by
    buffer, the allocation that gave that key back; of a lender that sleeps another one may get it. `telling`: by
    operation id, what the controller has not heard of: {"allocation_uuid", "indexes"}. `at`: the agent's clock, in
    seconds.
    """

    lender: str
    incarnation: str
    ticket: dict[str, Any]
    at: float
    buffers: dict[int, BorrowedBuffer] = field(default_factory=dict)
    released: dict[int, int] = field(default_factory=dict)
    left: dict[int, str] = field(default_factory=dict)
    telling: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name among all."""
        return name_of(self.lender, self.incarnation)

    @property
    def keys(self) -> dict[int, Key]:
        """Keys of what is used."""
        return {index: item.key for index, item in self.buffers.items()}

    def by_allocation(self, leaving: bool | None = None) -> dict[str, list[int]]:
        """Return the buffers of each allocation; `leaving` None: all of them."""
        found: dict[str, list[int]] = {}
        for index, item in sorted(self.buffers.items()):
            if leaving is None or item.leaving == leaving:
                found.setdefault(item.allocation_uuid, []).append(index)
        return found


def name_of(lender: str, incarnation: str) -> str:
    """Return the name of one incarnation of a lender."""
    return f"{lender}@{incarnation}"


class Store:
    """One file for each incarnation of a lender. Not locked: the caller orders its writes."""

    def __init__(self, records: Records, clock: Callable[[], float]) -> None:
        # Keys and tickets are in clear: the files are written with mode 0600, and nobody else lists them.
        records.folder.chmod(0o700)
        self._records, self.clock = records, clock

    def get(self, lender: str, incarnation: str) -> Held:
        """Return what is held, nothing when it is not known."""
        record = self._records.get(name_of(lender, incarnation))
        return _load(record) if record else Held(lender, incarnation, {}, self.clock())

    def all(self) -> list[Held]:
        """Return all."""
        return [_load(record) for record in self._records.all().values()]

    def put(self, held: Held, **changes: Any) -> Held:
        """Write down what is held."""
        held = replace(held, at=self.clock(), **changes)
        if not held.buffers:
            held = replace(held, ticket={})
        record = asdict(held)
        record["buffers"] = {
            str(index): {"allocation_uuid": item.allocation_uuid, "key": item.key.to_dict(), "leaving": item.leaving}
            for index, item in held.buffers.items()
        }
        self._records.put(held.name, record)
        return held

    def prune(self, keep_seconds: float) -> None:
        """Forget what was given back so long ago that no call of then can still come."""
        for held in self.all():
            if not held.buffers and not held.telling and self.clock() - held.at > keep_seconds:
                self._records.remove(held.name)


def _load(record: Mapping[str, Any]) -> Held:
    buffers = {
        int(index): BorrowedBuffer(item["allocation_uuid"], Key.from_dict(item["key"]), item["leaving"])
        for index, item in record["buffers"].items()
    }
    released = {int(index): number for index, number in record["released"].items()}
    left = {int(index): uuid for index, uuid in record.get("left", {}).items()}
    return Held(**{**record, "buffers": buffers, "released": released, "left": left})
