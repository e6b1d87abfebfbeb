"""The private data of librdmacm's messages between borrower and lender. Pure.

A request has room for 56 bytes: a mark and a proof, which identifies the borrower without showing the ticket's secret.
The response gives the flush page and the port of the key channel. A refusal has the error's code and the start of its
text.
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
    """Return the private data of a borrower's connection request."""
    return _MARK + proof(ticket.borrower, ticket.secret)


def proof_in(data: bytes) -> bytes:
    """Return the proof in a request; raises TransportGone if it has none."""
    if not data.startswith(_MARK) or len(data) < len(_MARK) + PROOF_BYTES:
        raise TransportGone("this is no borrower, or one of another version")
    return data[len(_MARK) :][:PROOF_BYTES]


class Welcome(NamedTuple):
    """The private data of the response to an admitted borrower."""

    control_port: int
    """The TCP port of the key channel, at the same address."""
    address: int
    """The address of the flush page."""
    rkey: int
    """The rkey of the flush page."""

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
    """Undo refusal; returns TransportGone for data that cannot be parsed."""
    code, _, text = data.rstrip(b"\0").decode(errors="ignore").partition("\0")
    return wire_errors.from_wire({"code": code, "text": text})
