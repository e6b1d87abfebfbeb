"""Errors of a transport: branches of the tree in pondstack.domain.errors, with codes as stable as those.

PondError
├── Conflict
│   └── AccessRefused         pondstack.access_refused
│       ├── UnknownKey        pondstack.unknown_key
│       ├── KeyRevoked        pondstack.key_revoked
│       ├── OutOfBounds       pondstack.out_of_bounds
│       └── WrongBorrower     pondstack.wrong_borrower
├── PartialBatch              pondstack.partial_batch
└── Unavailable
    ├── AnswerLost            pondstack.answer_lost
    ├── NoDevice              pondstack.no_rdma_device
    ├── RegistrationFailed    pondstack.registration_failed
    ├── RequestNotSent        pondstack.request_not_sent
    ├── RevokeFailed          pondstack.revoke_failed
    └── TransportGone         pondstack.transport_gone
        └── TransportTimeout  pondstack.transport_timeout

A refusal is certain: nothing was read or written. After TransportGone nobody knows that; read again, or write again.
"""

from pondstack.domain.errors import Conflict, PondError, Unavailable


class AccessRefused(Conflict):
    """The key does not allow this access."""

    code = "pondstack.access_refused"
    status = 403


class UnknownKey(AccessRefused):
    """The lender never gave out such a key, or so long ago that it is forgotten."""

    code = "pondstack.unknown_key"


class KeyRevoked(AccessRefused):
    """The lender took the memory back; of an access that overlapped that, a part may have been written."""

    code = "pondstack.key_revoked"


class OutOfBounds(AccessRefused):
    """The access is not within the region."""

    code = "pondstack.out_of_bounds"


class WrongBorrower(AccessRefused):
    """The key is another borrower's, or the lender does not know who connects."""

    code = "pondstack.wrong_borrower"


class NoDevice(Unavailable):
    """This host has no RDMA device, port or address that would do; the text says which command shows those it has."""

    code = "pondstack.no_rdma_device"


class RegistrationFailed(Unavailable):
    """The lender's host has no memory, or no room in a table, for what was to be lent."""

    code = "pondstack.registration_failed"


class RevokeFailed(Unavailable):
    """The device did not end a key: who had it may still reach the memory, which is nobody else's until it has."""

    code = "pondstack.revoke_failed"


class TransportGone(Unavailable):
    """The lender, or the way to it, is gone: what it had is to be had from the mirror only."""

    code = "pondstack.transport_gone"


class TransportTimeout(TransportGone):
    """The lender did not answer in time; it may be suspended."""

    code = "pondstack.transport_timeout"


class PartialBatch(PondError):
    """A batch ended early: the first `done` operations are complete, `reason` is why the next one failed.

    What comes after those two was not carried out, unless `reason` is TransportGone: then nobody knows.
    """

    code = "pondstack.partial_batch"

    def __init__(self, message: str, done: int = 0, reason: PondError | None = None) -> None:
        super().__init__(message)
        self.done = done
        self.reason = reason


class RequestNotSent(Unavailable):
    """A call over RDMA was not carried out, and never will be: make it by another way."""

    code = "pondstack.request_not_sent"


class AnswerLost(Unavailable):
    """A call over RDMA has no answer; whether it was carried out is unknown."""

    code = "pondstack.answer_lost"
