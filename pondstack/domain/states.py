"""The state machine of a slice, declared once; the docs draw it from this table and everything else raises.

A slice leaves its owner only when that host's agent acknowledged the release or the host was fenced at the device,
never on a time-out. Then it becomes its owner's heir's, or FREE through SANITIZING only. Pond section 4.2 (pool memory
ownership).
"""

from enum import StrEnum

from pondstack.domain.errors import IllegalTransition


class SliceState(StrEnum):
    """Where a slice stands."""

    FREE = "free"
    ASSIGNING = "assigning"
    ONLINE = "online"
    RELEASING = "releasing"
    SANITIZING = "sanitizing"
    QUARANTINED = "quarantined"


class SliceEvent(StrEnum):
    """What may happen to a slice."""

    ASSIGN = "assign"
    ACKNOWLEDGE = "acknowledge"
    RELEASE = "release"
    CONFIRM = "confirm"
    REINSTATE = "reinstate"
    HAND_OVER = "hand_over"
    SANITIZED = "sanitized"
    QUARANTINE = "quarantine"
    AUDIT = "audit"


_S, _E = SliceState, SliceEvent

TRANSITIONS: dict[tuple[SliceState, SliceEvent], SliceState] = {
    (_S.FREE, _E.ASSIGN): _S.ASSIGNING,
    (_S.ASSIGNING, _E.ACKNOWLEDGE): _S.ONLINE,
    (_S.ASSIGNING, _E.RELEASE): _S.RELEASING,
    (_S.ONLINE, _E.RELEASE): _S.RELEASING,
    (_S.RELEASING, _E.CONFIRM): _S.SANITIZING,
    # It is claimed again before its owner let go of it: nobody else had it meanwhile.
    (_S.RELEASING, _E.REINSTATE): _S.ONLINE,
    # Its owner let go of it and has an heir, whose guest runs on with what is in it: nobody sanitises it. It is ONLINE
    # at once where the heir has acknowledged it already (see domain.inheritance).
    **{(state, _E.HAND_OVER): _S.ASSIGNING for state in (_S.ONLINE, _S.RELEASING, _S.QUARANTINED)},
    (_S.SANITIZING, _E.SANITIZED): _S.FREE,
    # An audit has proved that no host holds the slice; it still has to be sanitised before anybody gets it.
    (_S.QUARANTINED, _E.AUDIT): _S.SANITIZING,
    # The same as from RELEASING, and only for what was set aside because its owner was silent (see domain.transitions).
    (_S.QUARANTINED, _E.REINSTATE): _S.ONLINE,
    **{(state, _E.QUARANTINE): _S.QUARANTINED for state in _S if state is not _S.QUARANTINED},
}

OWNED = frozenset({_S.ASSIGNING, _S.ONLINE, _S.RELEASING})
"""States in which a slice has exactly one owner (host and allocation)."""


def next_state(state: SliceState, event: SliceEvent) -> SliceState:
    """Return the state after `event`; raises IllegalTransition when the table has none."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"a slice that is {state} cannot take the event {event}") from None
