"""The errors for the statuses of failed work requests. Pure."""

from pondstack.domain.errors import PondError
from pondstack_rdma.errors import TransportGone, TransportTimeout
from pondstack_rdma.verbs.requester import BROKEN, HUNG_UP, SILENT

INVALID_REQUEST, ACCESS_REFUSED = 9, 10
FLUSHED, UNANSWERED = 5, 12

REFUSALS = (INVALID_REQUEST, ACCESS_REFUSED)
"""Refused by the lender's device, without its process."""


def failure(name: str, status: int, seconds: float) -> PondError:
    """Return the error for a status that is not a refusal. `name` is the link's, `seconds` its time-out."""
    if status in (UNANSWERED, SILENT):
        return TransportTimeout(f"{name}: no answer within {seconds:g} s; see whether the lender's host is suspended")
    if status == HUNG_UP:
        return TransportGone(f"{name} is broken: the lender has ended; go on from the mirror")
    if status == BROKEN:
        return TransportGone(f"{name} is broken: the RDMA device fails; see the kernel log")
    why = "its connection is in error" if status == FLUSHED else f"work completion status {status}"
    return TransportGone(f"{name} is broken: {why}; see `rdma link` and the kernel log at both sides")
