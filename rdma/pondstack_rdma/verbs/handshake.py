"""What two sides tell each other as private data of librdmacm's messages. Pure.

A request has room for 56 bytes: a mark and a proof, which tells who asks without showing the ticket's secret. The
answer says where the beacon is and where keys are shown; a refusal has the error's code and the begin of its text.
"""

import struct
from typing import NamedTuple, Self

from pondstack.domain.errors import PondError
from pondstack_rdma import wire_errors
from pondstack_rdma.errors import TransportGone
from pondstack_rdma.keyring import PROOF_BYTES, proof
from pondstack_rdma.model import Ticket

_MARK = b"pnd1"
_REFUSAL_BYTES = 148
_WELCOME = struct.Struct("!4sHQI")


def request(ticket: Ticket) -> bytes:
    """Return what a borrower asks with."""
    return _MARK + proof(ticket.borrower, ticket.secret)


def proof_in(data: bytes) -> bytes:
    """Return the proof of a request; raises TransportGone for what is none."""
    if not data.startswith(_MARK) or len(data) < len(_MARK) + PROOF_BYTES:
        raise TransportGone("this is no borrower, or one of another version")
    return data[len(_MARK) :][:PROOF_BYTES]


class Welcome(NamedTuple):
    """What a borrower is told that is let in."""

    control_port: int
    """Of TCP, at the same address: where it shows its keys."""
    address: int
    """Of the beacon, and the device's key of that."""
    rkey: int

    def pack(self) -> bytes:
        """Return it as private data."""
        return _WELCOME.pack(_MARK, *self)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Undo pack; raises ValueError."""
        if len(data) < _WELCOME.size or not data.startswith(_MARK):
            raise ValueError("the answer of a lender of another version")
        return cls(*_WELCOME.unpack_from(data)[1:])


def refusal(error: PondError) -> bytes:
    """Return an error as private data."""
    return f"{error.code}\0{error.message}".encode()[:_REFUSAL_BYTES]


def refused(data: bytes) -> PondError:
    """Undo refusal; what cannot be understood is TransportGone."""
    code, _, text = data.rstrip(b"\0").decode(errors="ignore").partition("\0")
    return wire_errors.from_wire({"code": code, "text": text})
