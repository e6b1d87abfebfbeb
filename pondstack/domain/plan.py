"""A consolidation plan: typed actions, what they are expected to bring, their states, and what may follow which. Pure.

A plan only says what could be done; nothing moves until it is applied (OpenStack Watcher parts decision and action in
the same way). Zombieland, EuroSys'18, section 5.2: hosts that are emptied lend their memory and sleep.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from pondstack.domain.errors import IllegalTransition


class PlanKind(StrEnum):
    """CONSOLIDATE: empty underloaded hosts, relieve overloaded ones. DRAIN: empty one host. RESTORE: open it again."""

    CONSOLIDATE = "consolidate"
    DRAIN = "drain"
    RESTORE = "restore"


class PlanTrigger(StrEnum):
    """Who wanted it: an operator, or the policy `auto`."""

    OPERATOR = "operator"
    POLICY = "policy"


class PlanState(StrEnum):
    """Where a plan stands.

    DECIDING: its inputs are read. PROPOSED: nothing of it was done. UNDOING: what it disabled is enabled again; servers
    that moved stay.
    """

    DECIDING = "deciding"
    PROPOSED = "proposed"
    RUNNING = "running"
    UNDOING = "undoing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ActionKind(StrEnum):
    """What one action does; in the order in which the actions of one host come.

    WAKE takes back what the host lends and enables it, too; SUSPEND has it lend first.
    """

    WAKE = "wake"
    ENABLE = "enable"
    DISABLE = "disable"
    MIGRATE = "live-migrate"
    DELEGATE = "delegate"
    SUSPEND = "suspend"


class ActionState(StrEnum):
    """RUNNING: it was begun. SKIPPED: there was nothing left to do, or the plan ended before."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    REVERTED = "reverted"


class Afterwards(StrEnum):
    """What becomes of a host that was emptied: it stays as it is, lends its memory, or lends it and sleeps."""

    KEEP = "keep"
    LEND = "lend"
    SUSPEND = "suspend"


_S = PlanState

ENDED = frozenset({_S.DONE, _S.FAILED, _S.CANCELLED})
"""States that nothing follows."""
UNDER_WAY = frozenset({_S.RUNNING, _S.UNDOING})
"""A host is of one plan in these states at most."""
OURS = "pondstack plan "
"""How the reason begins with which plans disable a compute service."""
UNATTENDED = frozenset({_S.DECIDING}) | UNDER_WAY
"""States in which the leader goes on with a plan by itself."""
TRANSITIONS: dict[PlanState, frozenset[PlanState]] = {
    _S.DECIDING: frozenset({_S.PROPOSED, _S.RUNNING, _S.FAILED, _S.CANCELLED}),
    _S.PROPOSED: frozenset({_S.RUNNING, _S.CANCELLED}),
    _S.RUNNING: frozenset({_S.DONE, _S.UNDOING}),
    _S.UNDOING: frozenset({_S.FAILED, _S.CANCELLED}),
    **dict.fromkeys(ENDED, frozenset()),
}
SETTLED = frozenset({ActionState.DONE, ActionState.FAILED, ActionState.SKIPPED, ActionState.REVERTED})
"""States of an action in which nothing more is to be done for it while its plan runs."""


def check_transition(before: PlanState, after: PlanState) -> None:
    """Raise IllegalTransition unless `after` may follow `before`."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(f"a plan that is {before} cannot become {after}")


@dataclass(frozen=True, slots=True)
class Action:
    """One action. Its `chain` is the host that it is done for: a chain's actions go one kind after the other.

    `host`: where it is done, of a migration its source. `destination` "": Nova's scheduler finds one. `mib`: local
    memory that a migration copies, or that a host lends. `tries`: how often it was begun.
    """

    number: int
    kind: ActionKind
    chain: str
    host: str
    server_uuid: str = ""
    destination: str = ""
    mib: int = 0
    state: ActionState = ActionState.PENDING
    reason: str = ""
    tries: int = 0

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that it changes."""
        return frozenset({self.host, self.destination, self.chain} - {""})


@dataclass(frozen=True, slots=True)
class Effect:
    """What a plan is expected to bring, told before anything runs.

    `gained_mib`: memory that hosts could lend more. `moved_mib`: local memory that migrations copy. `saved_watts`: an
    estimate by `power_profile`, not a measurement; None: no power profile. `worst_load_percent`: the greatest CPU load
    of a destination afterwards, of its threshold: 100 is the limit, so near it lies the risk. `whole_memory`: servers
    whose working set is unknown or too old, which count with all of their local memory.
    """

    hosts_emptied: int = 0
    hosts_woken: int = 0
    gained_mib: int = 0
    saved_watts: float | None = None
    power_profile: str = ""
    migrations: int = 0
    moved_mib: int = 0
    worst_load_percent: float = 0.0
    whole_memory: int = 0
    overloaded_left: int = 0

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Effect":
        """Return what a row keeps; fields of a newer release are dropped."""
        known = {item.name for item in fields(cls)}
        return cls(**{name: value for name, value in record.items() if name in known})


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan with what its next step needs. `left_out`: hosts that took no part, each with the reason.

    `settings`: the algorithms and limits that it is decided by; `inputs`: what they looked at, and how old that was.
    `at_once`: it is applied as soon as it is decided. `target`: the host that is drained or restored. `ending`: as what
    one that is undone ends. Times in seconds since the epoch by the store's clock; `age_seconds`: since it was decided,
    when it was read.
    """

    uuid: str
    kind: PlanKind
    trigger: PlanTrigger
    state: PlanState
    actions: tuple[Action, ...]
    effect: Effect = Effect()
    afterwards: Afterwards = Afterwards.KEEP
    at_once: bool = False
    target: str = ""
    ending: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    decided_at: float | None = None
    ended_at: float | None = None
    age_seconds: float = field(default=0.0, compare=False)

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that it changes."""
        return frozenset(name for action in self.actions for name in action.hosts)

    @property
    def cause(self) -> str:
        """Why it was made without an operator, "": nothing to tell. It is its reason while it has no other."""
        return str(self.inputs.get("cause", ""))

    @property
    def unplaced(self) -> tuple[dict[str, Any], ...]:
        """The servers that it is to wake hosts for, which found none; as records."""
        return tuple(self.inputs.get("unplaced", ()))

    @property
    def is_open(self) -> bool:
        """Whether something may still become of it."""
        return self.state not in ENDED


def reason_of(plan: Plan) -> str:
    """Return the reason with which a plan disables compute services."""
    return f"{OURS}{plan.uuid}"
