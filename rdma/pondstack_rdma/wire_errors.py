"""Errors on the wire: a lender's refusal reaches its borrower as what it was."""

from typing import Any

from pondstack.domain.errors import BadRequest, PondError
from pondstack_rdma.errors import (
    KeyRevoked,
    OutOfBounds,
    RegistrationFailed,
    TransportGone,
    UnknownKey,
    WrongBorrower,
)

_KNOWN: dict[str, type[PondError]] = {
    kind.code: kind
    for kind in (BadRequest, KeyRevoked, OutOfBounds, RegistrationFailed, TransportGone, UnknownKey, WrongBorrower)
}


def to_wire(error: PondError) -> dict[str, Any]:
    """Return an error as JSON can carry it."""
    return {"code": error.code, "text": error.message}


def from_wire(data: Any) -> PondError:
    """Undo to_wire; what cannot be understood is TransportGone."""
    known = _KNOWN.get(str(data.get("code"))) if isinstance(data, dict) else None
    if known is not None:
        return known(str(data.get("text", "")))
    return TransportGone(f"the lender answers with {str(data)[:80]!r}, which this version does not know")
