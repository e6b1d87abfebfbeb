"""Histories made by hand, for the tests of the validation: a small sound one, and the means to spoil it."""

from dataclasses import replace
from typing import Any

from tests.robustness.history import Call, Entry, History, Injected, Kind, Outcome, Standing

POOL = "pool"
SLICES = 4


def move(indexes: list[int], before: str | None, after: str, host: str | None = None, uuid: str | None = None) -> Any:
    """Return one move of a journal's effect."""
    return {
        "pool": POOL,
        "indexes": indexes,
        "from": before,
        "to": after,
        "host": host,
        "allocation": uuid,
        "reason": "",
    }


class Forge:
    """Writes calls and journal entries side by side; `epoch` is that of what comes next."""

    def __init__(self) -> None:
        self.epoch = 1
        self.now = 0.0
        self.history = History()
        self._grants: dict[str, tuple[str, list[int]]] = {}
        self.entry("register", "register_pool", {"moves": [move(list(range(SLICES)), None, "free")]})

    def entry(self, operation_id: str, kind: str, effect: dict[str, Any]) -> Entry:
        """Append to the journal."""
        made = Entry(len(self.history.journal) + 1, operation_id, kind, self.epoch, effect)
        self.history.journal.append(made)
        return made

    def call(self, operation_id: str, kind: Kind, host: str, uuid: str, outcome: Outcome = Outcome.OK) -> Call:
        """Append a call of half a second, half a second after the one before."""
        grant = kind in (Kind.ASSIGN, Kind.ATTACH) and outcome is Outcome.OK
        self.now += 1.0
        made = Call(
            operation_id=operation_id,
            kind=kind,
            host=host,
            consumer_uuid="vm",
            begun=self.now - 0.5,
            ended=None if outcome is Outcome.UNKNOWN else self.now,
            outcome=outcome,
            allocation_uuid=uuid,
            pool_uuid=POOL,
            slices=tuple(self._grants[uuid][1]) if grant else (),
            epoch=self.epoch if grant else 0,
        )
        self.history.calls.append(made)
        return made

    def assign(self, uuid: str, host: str, slices: list[int], outcome: Outcome = Outcome.OK) -> None:
        """Grant slices of a sound rack."""
        self._grants[uuid] = (host, slices)
        extents = [{"start": index, "count": 1} for index in slices]
        moves = [move(slices, "free", "assigning", host, uuid)]
        effect = {"allocation_uuid": uuid, "pool_uuid": POOL, "extents": extents, "moves": moves}
        self.entry(f"assign-{uuid}", "assign", effect)
        self.call(f"assign-{uuid}", Kind.ASSIGN, host, uuid, outcome)

    def acknowledge(self, uuid: str) -> None:
        """Bring slices online."""
        host, slices = self._grants[uuid]
        effect = {"slices": slices, "moves": [move(slices, "assigning", "online", host, uuid)]}
        self.entry(f"acknowledge-{uuid}", "acknowledge", effect)
        self.call(f"acknowledge-{uuid}", Kind.ACKNOWLEDGE, host, uuid)

    def release(self, uuid: str, outcome: Outcome = Outcome.OK) -> None:
        """Give slices back and have them sanitised."""
        host, slices = self._grants[uuid]
        effect = {"slices": slices, "moves": [move(slices, "online", "sanitizing")]}
        self.entry(f"release-{uuid}", "release", effect)
        self.call(f"release-{uuid}", Kind.RELEASE, host, uuid, outcome)
        effect = {"slices": slices, "moves": [move(slices, "sanitizing", "free")]}
        self.entry(f"sanitized-{uuid}", "sanitized", effect)

    def spoil(self, operation_id: str, **changes: Any) -> None:
        """Replace values of the first call of an operation."""
        calls = self.history.calls
        position = next(i for i, call in enumerate(calls) if call.operation_id == operation_id)
        calls[position] = replace(calls[position], **changes)

    def forget(self, operation_id: str) -> None:
        """Take an operation out of the journal."""
        self.history.journal = [item for item in self.history.journal if item.operation_id != operation_id]


def free_rack() -> Standing:
    """Return a rack in which nothing is left."""
    ledger: dict[Any, Any] = {(POOL, index): ("free", None, None) for index in range(SLICES)}
    return Standing(ledger, {}, {}, {POOL: SLICES})


def sound() -> Forge:
    """Return a sound history: two allocations over a fail-over, one after the other on the same slices."""
    forge = Forge()
    forge.assign("a", "h1", [0, 1])
    forge.acknowledge("a")
    forge.history.faults.append(Injected("kill leader", forge.now))
    forge.epoch = 2
    forge.release("a")
    forge.assign("b", "h2", [1, 2])
    forge.acknowledge("b")
    forge.release("b")
    forge.history.drained = free_rack()
    return forge
