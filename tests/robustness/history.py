"""What a run leaves behind: every call as its caller saw it, every fault, the journal, and how the rack ended.

All times are seconds of time.monotonic(), one clock for all processes of a machine; only differences mean something.
"""

import gzip
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Self


class Kind(StrEnum):
    """What was called: the controller's three verbs directly, an agent's two, and those of lent memory."""

    ASSIGN = "assign"
    ACKNOWLEDGE = "acknowledge"
    RELEASE = "release"
    ATTACH = "attach"
    DETACH = "detach"
    BORROW = "borrow"
    PREPARE = "prepare"
    ACKNOWLEDGE_BORROWED = "acknowledge_borrowed"
    GIVE_BACK = "give_back"


WRITES = frozenset({Kind.ASSIGN, Kind.ACKNOWLEDGE, Kind.RELEASE, Kind.ATTACH})
"""Calls that are answered only after a commit. A detach is answered by the agent, which tells the controller later."""


class Outcome(StrEnum):
    """What the caller knows. UNKNOWN: it gave up, or the run ended; it may have taken effect or not."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Call:
    """One operation with all its repetitions: from the first try to the answer. `slices`: those that were granted."""

    operation_id: str
    kind: Kind
    host: str
    consumer_uuid: str
    begun: float
    ended: float | None
    outcome: Outcome
    allocation_uuid: str = ""
    pool_uuid: str = ""
    slices: tuple[int, ...] = ()
    epoch: int = 0
    error: str = ""

    @classmethod
    def load(cls, data: dict[str, Any]) -> Self:
        """Build the value from JSON."""
        known = {item.name for item in fields(cls)}
        plain = {key: value for key, value in data.items() if key in known}
        enums = {"kind": Kind(data["kind"]), "outcome": Outcome(data["outcome"]), "slices": tuple(data["slices"])}
        return cls(**{**plain, **enums})


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault that happened. `at`: the moment before it; `host`: set when it concerns one host's agent only."""

    name: str
    at: float
    host: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the journal."""

    sequence: int
    operation_id: str
    kind: str
    epoch: int
    effect: dict[str, Any]


Place = tuple[str, int]
"""A slice: pool UUID and index."""

Owner = tuple[str, str]
"""Host and allocation UUID."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How the rack stands at a quiet moment: ledger, agents and device, each by its own word.

    `ledger`: state, host and allocation of each slice; `attached`: what each host's agent reports; `permitted`: the
    device's table; `audit`: findings of the controller's own audit that are more than information.
    """

    ledger: dict[Place, tuple[str, str | None, str | None]]
    attached: dict[Place, list[Owner]]
    permitted: dict[Place, Owner]
    totals: dict[str, int]
    audit: tuple[str, ...] = ()


@dataclass(slots=True)
class Loan:
    """Buffers (lender, incarnation, index) of one allocation as its borrower knows them.

    `acknowledged`, `returned`: from when to when it relied on them, None: not (yet). `keys`: ticket and keys by lender;
    never in a report. `wrong`: what was amiss with bytes.
    """

    operation_id: str
    host: str
    allocation_uuid: str
    buffers: tuple[tuple[str, str, int], ...]
    acknowledged: float | None = None
    returned: float | None = None
    keys: dict[str, tuple[Any, Any]] = field(default_factory=dict, repr=False)
    wrong: list[str] = field(default_factory=list)

    @property
    def mark(self) -> bytes:
        """What it writes into its buffers."""
        return self.allocation_uuid.encode()


@dataclass(frozen=True, slots=True)
class Lent:
    """Lent memory in the ledger at a quiet moment: state, borrower and allocation by (lender, incarnation, index).

    `returned`: whether all hosts had taken their memory back afterwards.
    """

    buffers: dict[tuple[str, str, int], tuple[str, str | None, str | None]]
    allocations: tuple[str, ...] = ()
    returned: bool = True


@dataclass(slots=True)
class History:
    """All that the validation reads. `held`: the rack after the faults stopped; `drained`: after all was detached."""

    calls: list[Call] = field(default_factory=list)
    faults: list[Injected] = field(default_factory=list)
    journal: list[Entry] = field(default_factory=list)
    held: Standing | None = None
    drained: Standing | None = None
    loans: list[Loan] = field(default_factory=list)
    lent: Lent | None = None
    lent_drained: Lent | None = None

    def save(self, path: Path) -> None:
        """Write calls, faults and journal as gzipped JSON lines."""
        with gzip.open(path, "wt", compresslevel=3) as file:
            for what, values in (("call", self.calls), ("fault", self.faults), ("entry", self.journal)):
                for value in values:
                    file.write(json.dumps({"what": what, **asdict(value)}) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a saved history; the standings are not in it."""
        made = cls()
        with gzip.open(path, "rt") as file:
            for line in file:
                data = json.loads(line)
                what = data.pop("what")
                if what == "call":
                    made.calls.append(Call.load(data))
                elif what == "fault":
                    made.faults.append(Injected(**data))
                else:
                    made.journal.append(Entry(**data))
        return made


class Recorder:
    """Takes calls and faults from all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._faults: list[Injected] = []
        self._loans: list[Loan] = []
        self._news = threading.Condition(self._lock)

    def call(self, call: Call) -> None:
        """Note a call that came to its end."""
        with self._news:
            self._calls.append(call)
            self._news.notify_all()

    @staticmethod
    def now() -> float:
        """Return this moment."""
        return time.monotonic()

    def loan(self, loan: Loan) -> None:
        """Note a loan; its borrower writes into it what becomes of it."""
        with self._lock:
            self._loans.append(loan)

    def fault(self, fault: Injected) -> None:
        """Note a fault, before it happens."""
        with self._lock:
            self._faults.append(fault)

    def wait_for_write_after(self, moment: float, timeout_seconds: float, host: str = "") -> float | None:
        """Wait for a call begun after `moment` and answered with success; returns when it ended, None: too late."""
        deadline = time.monotonic() + timeout_seconds
        with self._news:
            seen = self._first_after(moment)
            while True:
                for call in self._calls[seen:]:
                    if resumes(call, moment, host):
                        return call.ended
                seen = len(self._calls)
                if not self._news.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    return None

    def _first_after(self, moment: float) -> int:
        """Return where the calls begin that may have ended after `moment`: they were noted in that order."""
        position = len(self._calls)
        while position and (self._calls[position - 1].ended or moment) >= moment:
            position -= 1
        return position

    def counts(self) -> dict[Outcome, int]:
        """Return how many calls there are by outcome."""
        with self._lock:
            return {outcome: sum(call.outcome is outcome for call in self._calls) for outcome in Outcome}

    def history(self) -> History:
        """Return what was noted so far."""
        with self._lock:
            return History(calls=list(self._calls), faults=list(self._faults), loans=list(self._loans))


def resumes(call: Call, moment: float, host: str = "") -> bool:
    """Tell whether a call shows that writes go on after `moment`; with `host`, by that host's agent."""
    if call.outcome is not Outcome.OK or call.begun < moment:
        return False
    return call.kind in WRITES if not host else call.host == host and call.kind is Kind.ATTACH


def time_to_resume(fault: Injected, calls: Iterable[Call]) -> float | None:
    """Return the seconds from a fault to the first acknowledged write that was begun after it; None: there is none."""
    ends = [call.ended for call in calls if call.ended is not None and resumes(call, fault.at, fault.host)]
    return min(ends) - fault.at if ends else None
