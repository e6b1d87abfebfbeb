"""Why memory is quarantined: the cause, which rules compare, beside the reason, which is a text for operators."""

import re
from enum import StrEnum
from typing import NamedTuple

from pondstack.domain.states import SliceState


class Cause(StrEnum):
    """Why a slice or a buffer is QUARANTINED; it decides how it leaves the quarantine."""

    AGENT_DOWN = "agent_down"
    """The agent of its host is silent, and the host may still map it. It goes back if it is claimed again."""
    AGENT_LOST = "agent_lost"
    """Its host reports, and does not list memory that Placement says is claimed."""
    DEVICE_FAILED = "device_failed"
    """Its pool device does not answer. An operator frees it by an audit, once the device is back."""
    HOST_FENCED = "host_fenced"
    """An operator fenced its host. It is free after the device, or the lender, has locked that host out."""
    LENDER_LOST = "lender_lost"
    """Its lender does not have the memory any more. It is forgotten when its borrower lets go."""
    OFFLINE_STUCK = "offline_stuck"
    """Its host cannot take it offline."""
    PERMISSION_DIFFERS = "permission_differs"
    """The device lets in another host than the one that owns it."""
    PERMISSION_LEFT = "permission_left"
    """The device lets a host in, and the ledger says that it is free."""
    REVOKE_FAILED = "revoke_failed"
    """Its lender's device did not end a key of it. It is free once a repetition ends it; gone with its lender."""
    SANITIZE_FAILED = "sanitize_failed"
    """It could not be zeroed and verified. An operator frees it by an audit."""
    UNKNOWN_ATTACHMENT = "unknown_attachment"
    """A host reports that it holds it, for an allocation that the ledger does not know."""
    UNKNOWN = "unknown"
    """Another release set it aside, for a cause that this one does not know."""

    def reason(self, detail: str) -> str:
        """Return the text for operators. It begins with the cause: the former release decides by that (`stored`)."""
        return f"{self}: {detail}"


class Stored(NamedTuple):
    """What a row or a journaled move says: the cause, and of DEVICE_FAILED the number of the device's failure."""

    cause: Cause | None
    failure: int | None


_FAILURE = re.compile(rf"{Cause.DEVICE_FAILED}: failure (\d+) of ")


def failure_detail(number: int, about: str) -> str:
    """Return the detail of a reason DEVICE_FAILED: which failure of the device it is."""
    return f"failure {number} of {about}"


def stored(state: SliceState, cause: str | None, failure: int | None, reason: str) -> Stored:
    """Return the cause that a row or a journaled move has; (None, None) unless it is QUARANTINED.

    A leader of the former release knows the reason only: it leaves `cause` and `failure` NULL, or as they were of an
    earlier quarantine. So a reason that begins with a cause is believed before them; of our own rows both say the
    same. With the next release, whose former one is this, the columns can be believed alone: its migration has to fill
    them once more, as 0009 does, and then this function and the beginning of the reasons may go.
    """
    if state is not SliceState.QUARANTINED:
        return Stored(None, None)
    told = reason.partition(":")[0]
    if told in _VALUES:
        number = _FAILURE.match(reason)
        return Stored(Cause(told), int(number[1]) if number else None)
    if cause is None:
        return Stored(Cause.UNKNOWN if reason else None, None)
    return Stored(Cause(cause) if cause in _VALUES else Cause.UNKNOWN, failure)


_VALUES = frozenset(map(str, Cause))
