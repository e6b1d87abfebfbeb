"""The states of a host's sleep, from the order to suspend it until it is awake again, and what may follow which. Pure.

Zombieland (EuroSys'18), sections 4.1 to 4.5: an emptied host lends its memory, is suspended, and serves meanwhile.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from pondstack.domain.errors import IllegalTransition
from pondstack.domain.power import mode_of

DISABLED_REASON = "lending memory"
"""Why a sleeper's compute service is disabled in Nova; by it we know our own order from an operator's."""


class SleepState(StrEnum):
    """Where a host's sleep stands.

    DISABLING: Nova is told to place nothing there. LENDING: memory leaves Nova, and keys go to the escrow. SUSPENDING:
    its agent was told. ASLEEP: it is expected to be silent. WAKING: it is called until its agent answers. RECLAIMING:
    its memory becomes its own again. ENABLING: Nova may place servers there. LOST: it stopped serving while it slept,
    and was fenced: an operator has to look at it.
    """

    DISABLING = "disabling"
    LENDING = "lending"
    SUSPENDING = "suspending"
    ASLEEP = "asleep"
    WAKING = "waking"
    RECLAIMING = "reclaiming"
    ENABLING = "enabling"
    LOST = "lost"
    AWAKE = "awake"
    FAILED = "failed"
    ABORTED = "aborted"


_S = SleepState

ENDED = frozenset({_S.AWAKE, _S.FAILED, _S.ABORTED})
"""States that nothing follows."""
SILENT = frozenset({_S.SUSPENDING, _S.ASLEEP, _S.WAKING, _S.LOST})
"""States in which nobody wonders that the host's agent does not answer."""
BACK = frozenset({_S.WAKING, _S.RECLAIMING, _S.ENABLING})
"""States of the way back to Nova."""

TRANSITIONS: dict[SleepState, frozenset[SleepState]] = {
    # To ENABLING: servers came before Nova heard of it, or an operator wants it back.
    _S.DISABLING: frozenset({_S.LENDING, _S.ENABLING}),
    _S.LENDING: frozenset({_S.SUSPENDING, _S.RECLAIMING}),
    # To WAKING: it did not fall asleep in time, or said that it cannot, or is wanted back.
    _S.SUSPENDING: frozenset({_S.ASLEEP, _S.WAKING}),
    _S.ASLEEP: frozenset({_S.WAKING, _S.LOST}),
    _S.WAKING: frozenset({_S.RECLAIMING, _S.LOST}),
    _S.LOST: frozenset({_S.WAKING}),
    # To SUSPENDING: it is to sleep deeper, and lends no more.
    _S.RECLAIMING: frozenset({_S.ENABLING, _S.SUSPENDING}),
    _S.ENABLING: ENDED,
    **dict.fromkeys(ENDED, frozenset()),
}


def check_transition(before: SleepState, after: SleepState) -> None:
    """Raise IllegalTransition unless `after` may follow `before`; staying is allowed while it is open."""
    if after not in TRANSITIONS[before] and (after is not before or before in ENDED):
        raise IllegalTransition(f"a host's sleep that is {before} cannot become {after}")


@dataclass(frozen=True, slots=True)
class Work:
    """What a leader has to know of a sleep that another one began. Amounts in MiB.

    `mib`: how much it is to lend in all, None: as much as it can. `kept_disabled`: an operator had disabled its compute
    service before, which stays so. `disabled_by`: the reason with which a plan had; that one gives way. `ending`: as
    what it ends, "": as AWAKE. `incarnation`: of the memory that it lent when it fell asleep. `calls`: how often it was
    called since it is to wake. `was_reset`: its power was cycled. `deeper`: the driver by which it is to sleep once it
    has its memory back, or does; "": as it fell asleep. `ringers`: hosts that were connected to its doorbell before it
    slept. `called_by`: by what it was called last.
    """

    mib: int | None = None
    kept_disabled: bool = False
    ending: str = ""
    incarnation: str = ""
    calls: int = 0
    was_reset: bool = False
    disabled_by: str = ""
    deeper: str = ""
    ringers: tuple[str, ...] = ()
    called_by: str = ""

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Work":
        """Return what a row keeps; fields of a newer release are dropped."""
        known = {item.name for item in fields(cls)}
        found = {name: value for name, value in record.items() if name in known}
        return cls(**found | {"ringers": tuple(found.get("ringers", ()))})

    def to_record(self) -> dict[str, Any]:
        """Return what a row keeps."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class HostSleep:
    """One sleep of a host. Times in seconds since the epoch, by the store's clock.

    `driver`: how it sleeps (pondstack.domain.power). `lent_mib`: what it lends while it sleeps. `state_seconds`: for
    how long it was in its state when it was read.
    """

    uuid: str
    host: str
    driver: str
    state: SleepState = SleepState.DISABLING
    reason: str = ""
    lent_mib: int = 0
    work: Work = Work()
    created_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None
    state_seconds: float = 0.0

    @property
    def is_deeper(self) -> bool:
        """Whether it is in another sleep than it first was."""
        return self.work.deeper == self.driver

    @property
    def is_open(self) -> bool:
        """Whether it goes on."""
        return self.ended_at is None

    @property
    def serving(self) -> bool:
        """Whether its host is expected to serve what it lends without a word of its agent."""
        return self.state in SILENT and self.state is not SleepState.LOST

    @property
    def reachable(self) -> bool:
        """Whether other hosts reach the memory of its host now, or as soon as it does as it was told."""
        return self.state not in SILENT or (self.serving and mode_of(self.driver).serves)
