"""What the reconciler can do: typed actions, which the rules choose and the applier executes."""

from dataclasses import dataclass, field

from pondstack.domain.causes import Cause


@dataclass(frozen=True, slots=True)
class Action:
    """Base of all actions."""

    def __str__(self) -> str:
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class Offline(Action):
    """Have the agent offline an allocation; when it says that it holds none of it, the slices go to be sanitised.

    `report_sequence`: the report that this rests on. What has come online since then stays.
    """

    host: str
    allocation_uuid: str
    report_sequence: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"have {self.host} offline it"


@dataclass(frozen=True, slots=True)
class Acknowledge(Action):
    """The agent reports what it could not acknowledge."""

    host: str
    allocation_uuid: str

    def __str__(self) -> str:
        return "take the report as the acknowledgement"


@dataclass(frozen=True, slots=True)
class BeginRelease(Action):
    """Nobody claims it and its host is silent: RELEASING until the host confirms."""

    allocation_uuid: str
    reason: str

    def __str__(self) -> str:
        return "begin the release"


@dataclass(frozen=True, slots=True)
class Reinstate(Action):
    """It is claimed again and its host still holds it: ONLINE, as if its release had never begun."""

    allocation_uuid: str

    def __str__(self) -> str:
        return "let it stay with its host"


@dataclass(frozen=True, slots=True)
class QuarantineAllocation(Action):
    """Set an allocation's slices aside."""

    allocation_uuid: str
    cause: Cause
    detail: str

    @property
    def reason(self) -> str:
        """The text for operators."""
        return self.cause.reason(self.detail)

    def __str__(self) -> str:
        return "quarantine its slices"


@dataclass(frozen=True, slots=True)
class FailAllocation(Action):
    """Set an allocation aside whose device has failed, for the `failure`th time; `notify`: send the notification, once.

    `about`: the pool, for the reason.
    """

    allocation_uuid: str
    failure: int
    about: str
    notify: bool

    def __str__(self) -> str:
        return "quarantine its slices, send the notification"


@dataclass(frozen=True, slots=True)
class FenceSlices(Action):
    """Have the device keep a dead host out; when it confirms that, the slices go to be sanitised."""

    host: str
    pool_uuid: str
    indexes: tuple[int, ...]

    def __str__(self) -> str:
        return f"have the device keep {self.host} out, then sanitise them"


@dataclass(frozen=True, slots=True)
class QuarantineSlices(Action):
    """Set slices aside that the ledger takes for free; `host` and `allocation_uuid`: who holds them all the same.

    `failure`: of their device, with the cause DEVICE_FAILED.
    """

    pool_uuid: str
    indexes: tuple[int, ...]
    cause: Cause
    detail: str
    host: str | None = None
    allocation_uuid: str | None = None
    failure: int | None = None

    @property
    def reason(self) -> str:
        """The text for operators."""
        return self.cause.reason(self.detail)

    def __str__(self) -> str:
        return "quarantine them"


@dataclass(frozen=True, slots=True)
class AuditSlices(Action):
    """It is proved that no host holds them: they go to be sanitised."""

    pool_uuid: str
    indexes: tuple[int, ...]
    reason: str

    def __str__(self) -> str:
        return "sanitise them and set them free"


@dataclass(frozen=True, slots=True)
class Regrant(Action):
    """Give the device's permission to the owner that the ledger names."""

    allocation_uuid: str

    def __str__(self) -> str:
        return "grant it again"


@dataclass(frozen=True, slots=True)
class EndPermissions(Action):
    """End what the device lets an allocation use that the ledger does not give it."""

    pool_uuid: str
    indexes: tuple[int, ...]
    allocation_uuid: str

    def __str__(self) -> str:
        return f"end the permission of allocation {self.allocation_uuid}"


@dataclass(frozen=True, slots=True)
class TakeDelegation(Action):
    """A lender's report is taken for its word of what it lends: the ledger has another one, or none.

    `offsets_mib`: (index, offset) of all that it lends; `sequence`: the report's number.
    """

    host: str
    incarnation: str
    kind: str
    buffer_mib: int
    offsets_mib: tuple[tuple[int, int], ...]
    sequence: int

    def __str__(self) -> str:
        return "take the report for what it lends"


@dataclass(frozen=True, slots=True)
class RevokeKeys(Action):
    """Have a lender end keys that nobody may have; `generations`: (index, the newest that ends)."""

    host: str
    incarnation: str
    generations: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return f"have {self.host} end the keys"


@dataclass(frozen=True, slots=True)
class LetGo(Action):
    """Have a borrower let go of buffers that are not its own in the ledger; `allocation_uuid` '': promised ones."""

    host: str
    allocation_uuid: str
    lender: str
    incarnation: str
    indexes: tuple[int, ...]

    def __str__(self) -> str:
        return f"have {self.host} let go of them"


@dataclass(frozen=True, slots=True)
class EndSwap(Action):
    """Have a host end the swap disk of an instance that nobody claims, and ask for `loans`, what it has borrowed, back.

    Its agent refuses while the instance runs.
    """

    host: str
    consumer_uuid: str
    loans: tuple[str, ...]
    reason: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"have {self.host} end it"


@dataclass(frozen=True, slots=True)
class AskBack(Action):
    """Begin the release of a loan, or of `only` some (incarnation, index) of it: its borrower lets go, its keys end."""

    allocation_uuid: str
    reason: str
    only: tuple[tuple[str, int], ...] | None = None

    def __str__(self) -> str:
        return "ask for it back"


@dataclass(frozen=True, slots=True)
class RemoveHost(Action):
    """Forget a host that is gone, unless something of it is left."""

    host: str

    def __str__(self) -> str:
        return f"remove {self.host}"


@dataclass(frozen=True, slots=True)
class LeaveAggregate(Action):
    """Take the provider of a host that is gone out of an aggregate of ours."""

    host: str
    provider: str
    aggregate: str

    def __str__(self) -> str:
        return "take it out of the aggregate"


@dataclass(frozen=True, slots=True)
class RemoveProvider(Action):
    """Delete a provider of Placement that no pool is behind."""

    provider: str

    def __str__(self) -> str:
        return "delete the provider"


COMMANDS = (Offline, RevokeKeys, LetGo, EndSwap)
"""Actions that command an agent."""


def is_for_rounds(action: object) -> bool:
    """Tell whether an action has to wait for the rounds of a leader that hears its agents.

    It commands one, or sets memory aside because one is silent.
    """
    silent = isinstance(action, QuarantineAllocation) and action.cause is Cause.AGENT_DOWN
    return silent or isinstance(action, COMMANDS)
