"""The controller as the agent sees it: every failure is an error of pondstack's tree."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import oslo_messaging
from kombu.exceptions import OperationalError

from pondstack.domain import errors
from pondstack.domain.requests import AssignRequest, BorrowRequest
from pondstack.rpc.wire import Grant, Report, Sample
from pondstack_agent.rpc_errors import local

T = TypeVar("T")


class Controller(Protocol):
    """What the agent calls; pondstack.rpc.controller_api.ControllerAPI does it over RPC."""

    def assign(self, operation_id: str, request: AssignRequest) -> Grant:
        """Take free slices."""

    def acknowledge(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """The slices are online."""

    def release(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """The slices are offline."""

    def heartbeat(self, report: Report) -> dict[str, Any]:
        """Tell what is attached."""

    def telemetry(self, *, host: str, samples: Sequence[Sample]) -> None:
        """Hand over what was measured."""

    def delegate(
        self,
        *,
        host: str,
        sequence: int,
        incarnation: str,
        kind: str,
        buffer_mib: int,
        buffers: Sequence[dict[str, int]],
    ) -> None:
        """Tell all that is lent."""

    def reclaim(self, *, operation_id: str, host: str, mib: int) -> dict[str, Any]:
        """Ask for lent memory back."""

    def release_buffers(
        self,
        *,
        operation_id: str,
        host: str,
        allocation_uuid: str,
        lender: str,
        incarnation: str,
        indexes: Sequence[int],
    ) -> None:
        """Borrowed buffers are used no more."""

    def borrow(self, operation_id: str, request: BorrowRequest) -> dict[str, Any]:
        """Ask for memory that others lend."""

    def acknowledge_borrowed(
        self, *, operation_id: str, allocation_uuid: str, host: str, opened: Sequence[tuple[str, int]]
    ) -> None:
        """The keys of borrowed buffers are open."""


class ControllerLink:
    """Calls the controller; raises Unavailable when it does not answer in time, its own error when it refuses.

    oslo.messaging waits for a lost broker without limit, whatever the call's time-out. So calls run in `executor`, and
    one that misses the deadline is left to end there; its operation id makes a late effect harmless.
    """

    def __init__(self, controller: Controller, executor: Any, deadline_seconds: float) -> None:
        self._controller = controller
        self._executor = executor
        self._deadline_seconds = deadline_seconds

    def assign(self, operation_id: str, request: AssignRequest) -> Grant:
        """Take free slices for a consumer."""
        return self._call(self._controller.assign, operation_id, request)

    def acknowledge(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """Tell that an allocation is online."""
        self._call(self._controller.acknowledge, operation_id=operation_id, allocation_uuid=allocation_uuid, host=host)

    def release(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """Tell that an allocation is offline."""
        self._call(self._controller.release, operation_id=operation_id, allocation_uuid=allocation_uuid, host=host)

    def heartbeat(self, report: Report) -> dict[str, Any]:
        """Tell what is attached."""
        return self._call(self._controller.heartbeat, report)

    def telemetry(self, *, host: str, samples: Sequence[Sample]) -> None:
        """Hand over what was measured of the guests."""
        self._call(self._controller.telemetry, host=host, samples=samples)

    def delegate(self, **offer: Any) -> None:
        """Tell all that this host lends."""
        self._call(self._controller.delegate, **offer)

    def reclaim(self, *, operation_id: str, host: str, mib: int) -> dict[str, Any]:
        """Ask for lent memory back; answers which buffers nobody has any more."""
        return self._call(self._controller.reclaim, operation_id=operation_id, host=host, mib=mib)

    def release_buffers(self, **release: Any) -> None:
        """Tell that borrowed buffers are used no more."""
        self._call(self._controller.release_buffers, **release)

    def borrow(self, operation_id: str, request: BorrowRequest) -> dict[str, Any]:
        """Ask for memory that others lend; answers buffers and keys."""
        return self._call(self._controller.borrow, operation_id, request)

    def acknowledge_borrowed(self, **opened: Any) -> None:
        """Tell that the keys of an allocation are open."""
        self._call(self._controller.acknowledge_borrowed, **opened)

    def _call(self, method: Callable[..., T], *arguments: Any, **named: Any) -> T:
        with _translated(method.__name__):
            future = self._executor.submit(method, *arguments, **named)
            try:
                answer: T = future.result(timeout=self._deadline_seconds)
            except TimeoutError:
                future.cancel()
                raise oslo_messaging.MessagingTimeout("the message bus is away or slow") from None
            return answer


@contextmanager
def _translated(method: str) -> Iterator[None]:
    try:
        yield
    except errors.PondError as error:
        raise local(error) from None
    except oslo_messaging.MessagingTimeout as error:
        raise errors.Unavailable(
            f"the controller did not answer {method} in time; check pondstack-controller and the message bus, "
            "then repeat with the same operation id"
        ) from error
    except (oslo_messaging.MessagingException, OperationalError, OSError) as error:
        raise errors.Unavailable(
            f"the controller could not do {method} ({type(error).__name__}: {_first_line(error)}); see its log and the "
            "message bus, then repeat with the same operation id"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]
