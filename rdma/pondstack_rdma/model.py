"""What lenders and borrowers hand each other: characteristics, tickets, keys, operations. No I/O."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from pondstack.domain.errors import BadRequest

WritableBuffer = bytearray | memoryview
"""Anything with a writable, contiguous buffer; mypy knows no better name for it in Python 3.11."""

ReadableBuffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Characteristics:
    """What a driver promises; the contract tests hold it to that."""

    driver: str
    one_sided: bool
    """Whether an access needs nothing of the lender's CPU."""
    serves_frozen: bool
    """Whether a lender whose processes are frozen serves the keys that its borrowers had opened before."""
    refused_by: Literal["device", "library", "lender"]
    """Who refuses a bad access: the RDMA device, this library in the borrower's process, or the lender's process."""
    refuses_revoked_at_once: bool
    """Whether every access that begins after `revoke` has returned is refused."""
    refusal_ends_link: bool
    """Whether the borrower has to connect anew after a refusal, as with a reliable connection of RDMA."""
    same_machine: bool
    max_batch: int
    max_batch_bytes: int
    """Of all operations of a batch together."""
    max_message_bytes: int
    """Of one operation."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a borrower connects with; the lender makes one per borrower. The secret shows who connects."""

    driver: str
    address: str
    borrower: str
    secret: bytes = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can carry it."""
        return asdict(self) | {"secret": self.secret.hex()}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Undo to_dict; raises BadRequest."""
        try:
            driver, address, borrower = (_text(data, name) for name in ("driver", "address", "borrower"))
            return cls(driver, address, borrower, bytes.fromhex(data["secret"]))
        except (KeyError, TypeError, ValueError) as error:
            raise BadRequest("this is no ticket of a lender; ask the lender's agent for a new one") from error


@dataclass(frozen=True, slots=True)
class Key:
    """One borrower's right to one region of `size_bytes`. `number` is never used again by the same lender.

    `location`: where the region is, in the terms of the driver, so that a lender need not be asked, which may sleep;
    None: ask it. It is no part of the right.
    """

    number: int
    borrower: str
    size_bytes: int
    token: bytes = field(repr=False)
    location: Mapping[str, int] | None = field(default=None, repr=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.number)  # for speed: an access looks its key up

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can carry it."""
        found = asdict(self) | {"token": self.token.hex()}
        if self.location is None:
            del found["location"]
        return found

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Undo to_dict; raises BadRequest."""
        try:
            number, size = (_number(data, name) for name in ("number", "size_bytes"))
            return cls(number, _text(data, "borrower"), size, bytes.fromhex(data["token"]), _location(data))
        except (KeyError, TypeError, ValueError) as error:
            raise BadRequest("this is no key of a lender; export the region again") from error


@dataclass(frozen=True, slots=True)
class Region:
    """Memory that a lender registered. `locked` tells whether the kernel keeps it in RAM."""

    number: int
    size_bytes: int
    locked: bool


@dataclass(frozen=True, slots=True)
class Read:
    """Fill a buffer from a region; after a failure its content is undefined."""

    key: Key
    offset: int
    into: WritableBuffer


@dataclass(frozen=True, slots=True)
class Write:
    """Copy a buffer into a region; the buffer is free for reuse when the call returns."""

    key: Key
    offset: int
    data: ReadableBuffer


Operation = Read | Write


def buffer_of(operation: Operation) -> memoryview:
    """Return the local buffer of an operation as plain bytes; raises BadRequest for one that cannot be."""
    try:
        view = memoryview(operation.into if isinstance(operation, Read) else operation.data).cast("B")
    except TypeError as error:
        raise BadRequest(f"the buffer of a transfer must be contiguous bytes: {error}") from error
    if isinstance(operation, Read) and view.readonly:
        raise BadRequest("the buffer of a read must be writable; pass a bytearray or a view of one")
    return view


def _location(data: Any) -> Mapping[str, int] | None:
    found = data.get("location")
    return None if found is None else {str(name): _number(found, name) for name in dict(found)}


def _text(data: Any, name: str) -> str:
    if not isinstance(data[name], str):
        raise TypeError(f"{name} is no text")
    return str(data[name])


def _number(data: Any, name: str) -> int:
    if isinstance(data[name], bool) or not isinstance(data[name], int):
        raise TypeError(f"{name} is no number")
    return int(data[name])
