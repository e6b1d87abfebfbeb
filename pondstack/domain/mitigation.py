"""The states of a mitigation, which takes a guest's pool memory away for good, and what may follow which. Pure.

Pond, sections 4.2 and 4.4: a VM that is slowed by its pool memory gets local memory, once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from pondstack.domain.errors import IllegalTransition


class MitigationMethod(StrEnum):
    """COPY: the host copies the pages to its local memory. MIGRATE: the guest moves to a host that has room."""

    COPY = "copy"
    MIGRATE = "migrate"


class MitigationTrigger(StrEnum):
    """Who wanted it: an operator, or the QoS monitor."""

    OPERATOR = "operator"
    MONITOR = "monitor"


class MitigationState(StrEnum):
    """Where a mitigation stands.

    CLAIMING: Placement is asked for local memory beside the pool share. MOVING: the pages move. REWRITING: the guest's
    stored domain is taken off the pool. RELEASING: the slices go back. UNCLAIMING: the pool share leaves the claim.
    UNDOING: the claim becomes what it was. By migration: CLAIMING asks for a host, MOVING waits for Nova, RELEASING
    waits until the former host has let go.
    """

    CLAIMING = "claiming"
    MOVING = "moving"
    REWRITING = "rewriting"
    RELEASING = "releasing"
    UNCLAIMING = "unclaiming"
    UNDOING = "undoing"
    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"


_S = MitigationState

ENDED = frozenset({_S.DONE, _S.FAILED, _S.ABORTED})
"""States that nothing follows."""
ABORTABLE = frozenset({_S.CLAIMING, _S.MOVING, _S.UNDOING})
"""Until its domain is rewritten a guest is of the pool as before; from then on it only goes forward."""

TRANSITIONS: dict[MitigationState, frozenset[MitigationState]] = {
    # Straight to UNCLAIMING, from wherever: the guest was started anew, all local by its claim, and gave its slices up.
    _S.CLAIMING: frozenset({_S.MOVING, _S.UNCLAIMING, _S.UNDOING, _S.FAILED, _S.ABORTED}),
    # To CLAIMING: by the other method, or from the other host where a migration left the guest with pool memory.
    _S.MOVING: frozenset({_S.CLAIMING, _S.REWRITING, _S.RELEASING, _S.UNCLAIMING, _S.UNDOING, _S.FAILED}),
    # FAILED: the guest was deleted, or moved away with pool memory; CLAIMING: it was, and came back.
    _S.REWRITING: frozenset({_S.CLAIMING, _S.RELEASING, _S.UNCLAIMING, _S.FAILED}),
    # To MOVING: a suspended guest was resumed before its domain was rewritten, and uses the pool again.
    _S.RELEASING: frozenset({_S.CLAIMING, _S.MOVING, _S.UNCLAIMING, _S.FAILED}),
    _S.UNCLAIMING: frozenset({_S.CLAIMING, _S.DONE, _S.FAILED}),
    # Forward again: its pages had all moved before the host heard that it was to stop.
    _S.UNDOING: frozenset({_S.CLAIMING, _S.REWRITING, _S.RELEASING, _S.UNCLAIMING, _S.FAILED, _S.ABORTED}),
    **dict.fromkeys(ENDED, frozenset()),
}


def check_transition(before: MitigationState, after: MitigationState) -> None:
    """Raise IllegalTransition unless `after` may follow `before`; staying is allowed while it is open."""
    if after not in TRANSITIONS[before] and (after is not before or before in ENDED):
        raise IllegalTransition(f"a mitigation that is {before} cannot become {after}")


@dataclass(frozen=True, slots=True)
class Work:
    """What a leader has to know of a mitigation that another one began. Amounts in MiB.

    `guest_mib`: all of the guest's memory. `either`: it may go on by migration where there is no local room. `ending`:
    as what an undone one ends, or the method that it goes on by; `tries`: how often its move was begun. `corrected`:
    its split is marked. `undone`: its claim was written back since it is to be undone.
    """

    guest_mib: int = 0
    either: bool = False
    ending: str = ""
    tries: int = 0
    corrected: bool = False
    undone: bool = False

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Work":
        """Return what a row keeps; fields of a newer release are dropped."""
        known = {item.name for item in fields(cls)}
        return cls(**{name: value for name, value in record.items() if name in known})


@dataclass(frozen=True, slots=True)
class Mitigation:
    """One mitigation, with what its next step needs. Times in seconds since the epoch, by the store's clock.

    `state_seconds`: for how long it was in its state when it was read.
    """

    uuid: str
    consumer_uuid: str
    host: str
    project_id: str
    method: MitigationMethod
    state: MitigationState
    trigger: MitigationTrigger
    forced: bool
    pool_mib: int
    left_mib: int
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    work: Work = Work()
    created_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None
    state_seconds: float = field(default=0.0, compare=False)

    @property
    def abortable(self) -> bool:
        """Whether it may still be undone: by copy, until the guest's domain is rewritten."""
        rewritten = self.method is MitigationMethod.COPY and self.work.corrected
        return self.state in ABORTABLE and not rewritten

    @property
    def is_open(self) -> bool:
        """Whether it goes on."""
        return self.ended_at is None
