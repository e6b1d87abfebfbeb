"""The outcome of each operation, on disk: a repeated one gets the same answer, a late one changes nothing.

attach   PENDING (slices asked for) -> GRANTED (slices known) -> DONE (controller knows) -> OVER (detached)
         PENDING -> CANCELLED (its consumer was detached; to be undone) -> OVER; any -> OVER (refused, undone)
detach   PENDING (the allocations to offline are written down) -> DONE
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from pondstack.domain import errors
from pondstack.domain.requests import AssignRequest
from pondstack.rpc.wire import Grant, assign_request, to_arguments
from pondstack_agent.records import Records


class Kind(StrEnum):
    """The kind of a request."""

    ATTACH = "attach"
    DETACH = "detach"


class Status(StrEnum):
    """How far an operation has come."""

    PENDING = "pending"
    GRANTED = "granted"
    DONE = "done"
    CANCELLED = "cancelled"
    OVER = "over"


UNFINISHED = frozenset({Status.PENDING, Status.GRANTED, Status.CANCELLED})


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `at`: when it last changed, in seconds since the epoch of time.time().

    `online_at`: of an attach, a number of the host's reports: those before it do not know that its memory is online.
    """

    operation_id: str
    kind: Kind
    consumer_uuid: str
    at: float
    status: Status = Status.PENDING
    request: dict[str, Any] = field(default_factory=dict)
    grant: dict[str, Any] | None = None
    allocations: tuple[str, ...] = ()
    error: tuple[str, str] | None = None
    online_at: int = 0

    def assign_request(self, host: str) -> AssignRequest:
        """Return what an attach asks the controller for, for this host."""
        return assign_request(consumer_uuid=self.consumer_uuid, host=host, **self.request)

    @property
    def granted(self) -> Grant | None:
        """The grant of an attach, once known."""
        return Grant.from_wire(self.grant) if self.grant else None

    def failure(self) -> errors.PondError:
        """Return the error that this operation ended with."""
        name, text = self.error or ("Conflict", f"operation {self.operation_id} is over; make a new operation id")
        return (errors.by_name(name) or errors.PondError)(text)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Build the value from its record."""
        return cls(
            **{
                **record,
                "kind": Kind(record["kind"]),
                "status": Status(record["status"]),
                "allocations": tuple(record["allocations"]),
                "error": tuple(record["error"]) if record["error"] else None,
            }
        )


class Operations:
    """The operations that this agent remembers."""

    def __init__(self, records: Records, clock: Callable[[], float]) -> None:
        self._records = records
        self._clock = clock

    def find(
        self, operation_id: str, kind: Kind, consumer_uuid: str, request: dict[str, Any] | None = None
    ) -> Operation | None:
        """Return an operation, None when it is new; raises OperationMismatch when the id was used otherwise."""
        record = self._records.get(operation_id)
        if record is None:
            return None
        found = Operation.from_record(record)
        if (found.kind, found.consumer_uuid, found.request) != (kind, consumer_uuid, request or {}):
            raise errors.OperationMismatch(
                f"operation {operation_id} was already used for another request ({found.kind} of "
                f"{found.consumer_uuid}); make a new id"
            )
        return found

    def attach(self, operation_id: str, request: AssignRequest) -> Operation:
        """Return the attach of this id and request, written down anew if need be; raises OperationMismatch."""
        consumer_uuid = request.consumer_uuid
        wanted = {key: value for key, value in to_arguments(request).items() if key not in ("consumer_uuid", "host")}
        found = self.find(operation_id, Kind.ATTACH, consumer_uuid, wanted)
        return found or self.start(operation_id, Kind.ATTACH, consumer_uuid, request=wanted)

    def start(self, operation_id: str, kind: Kind, consumer_uuid: str, **changes: Any) -> Operation:
        """Write a new operation down, before anything is done for it."""
        return self._put(Operation(operation_id, kind, consumer_uuid, self._clock(), **changes))

    def change(self, operation: Operation, status: Status, **changes: Any) -> Operation:
        """Write down how far an operation came."""
        return self._put(replace(operation, status=status, at=self._clock(), **changes))

    def end(self, operation: Operation, error: errors.PondError) -> Operation:
        """Write down that an operation ended with an error, which every repetition gets."""
        return self.change(operation, Status.OVER, error=(type(errors.to_domain(error)).__name__, error.message))

    def all(self) -> list[Operation]:
        """Return all operations, the oldest change first."""
        return sorted((Operation.from_record(r) for r in self._records.all().values()), key=lambda item: item.at)

    def attaches(self, consumer_uuid: str) -> list[Operation]:
        """Return the attach operations of a consumer."""
        return [item for item in self.all() if item.kind is Kind.ATTACH and item.consumer_uuid == consumer_uuid]

    def online_at(self, allocation_uuid: str) -> int:
        """Return since which of the host's reports an allocation is online, 0 when that is not known."""
        mine = (item for item in self.all() if item.granted and item.granted.allocation_uuid == allocation_uuid)
        return max((item.online_at for item in mine), default=0)

    def forget(self, operation: Operation) -> None:
        """Drop an operation that nobody can repeat any more."""
        self._records.remove(operation.operation_id)

    def age_seconds(self, operation: Operation) -> float:
        """Return how long ago an operation last changed."""
        return self._clock() - operation.at

    def _put(self, operation: Operation) -> Operation:
        self._records.put(operation.operation_id, asdict(operation))
        return operation
