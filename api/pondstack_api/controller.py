"""The controller as the API sees it: an answer, an error, or Unavailable in bounded time, whatever the broker does."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from oslo_config import cfg

from pondstack.domain.errors import Unavailable
from pondstack.rpc import transport
from pondstack.rpc.controller_api import ControllerAPI

T = TypeVar("T")

HANGING_CALLS_MAX = 32
AUDIT_SECONDS = 120.0
"""What pondstack.rpc.controller_api.ControllerAPI.audit waits."""

SILENT = (
    "the controller did not answer in time. The change may still take effect: read the object again before you repeat "
    "the request; if this lasts, look at /healthcheck and at the log of pondstack-controller"
)


class Controller(Protocol):
    """The part of pondstack.rpc's clients that the API calls."""

    def set_host(self, *, name: str, enabled: bool, reason: str, generation: int | None) -> dict[str, Any]:
        """Enable or disable a host for new pool memory; raises GenerationConflict."""

    def fence_host(self, *, name: str, reason: str, force: bool) -> dict[str, Any]:
        """Take everything from a dead host; raises Conflict."""

    def unfence_host(self, *, name: str) -> dict[str, Any]:
        """Let a fenced host take part again; raises Conflict."""

    def delegate_host(self, *, name: str, mib: int, kind: str, operation_id: str | None) -> dict[str, Any]:
        """Have a host lend so many MiB in all; raises BadRequest, Conflict, HostUnusable, AgentUnavailable."""

    def reclaim_host(self, *, name: str, mib: int, seconds: float | None, operation_id: str | None) -> dict[str, Any]:
        """Have a host take so many MiB back, by force after `seconds`; raises as delegate_host."""

    def audit(self, *, repair: bool) -> dict[str, Any]:
        """Compare ledger, Placement, agents and devices now."""

    def failover(self, *, leader: str, to: str | None) -> None:
        """Have the leading controller hand over to `to` (None: whoever stands by); raises NotLeader, Unavailable."""


class BoundedController:
    """Calls a controller with a deadline of its own.

    oslo.messaging's time-out counts from the moment that the broker took the message: without a broker a call waits
    for ever. So each call has a thread, which may hang on; HANGING_CALLS_MAX of them, then calls are refused at once.
    """

    def __init__(self, controller: Controller, timeout_seconds: float, audit_seconds: float = AUDIT_SECONDS) -> None:
        self._controller = controller
        self._timeout = timeout_seconds
        self._audit = audit_seconds
        self._slots = threading.BoundedSemaphore(HANGING_CALLS_MAX)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> "BoundedController":
        """Connect by the configuration's transport_url; the connection is made at the first call."""
        timeout = conf.api.controller_timeout_seconds
        # The deadline of the thread is the later one: normally oslo.messaging times out, and cleans up.
        return cls(ControllerAPI(transport.get_transport(conf), timeout), timeout + 1.0, AUDIT_SECONDS + 1.0)

    def set_host(self, *, name: str, enabled: bool, reason: str, generation: int | None) -> dict[str, Any]:
        """Enable or disable a host for new pool memory."""
        return self._within(
            self._timeout,
            lambda: self._controller.set_host(name=name, enabled=enabled, reason=reason, generation=generation),
        )

    def fence_host(self, *, name: str, reason: str, force: bool) -> dict[str, Any]:
        """Take everything from a dead host."""
        return self._within(self._timeout, lambda: self._controller.fence_host(name=name, reason=reason, force=force))

    def unfence_host(self, *, name: str) -> dict[str, Any]:
        """Let a fenced host take part again."""
        return self._within(self._timeout, lambda: self._controller.unfence_host(name=name))

    def delegate_host(self, *, name: str, mib: int, kind: str, operation_id: str | None) -> dict[str, Any]:
        """Have a host lend so many MiB in all."""
        return self._within(
            self._timeout,
            lambda: self._controller.delegate_host(name=name, mib=mib, kind=kind, operation_id=operation_id),
        )

    def reclaim_host(self, *, name: str, mib: int, seconds: float | None, operation_id: str | None) -> dict[str, Any]:
        """Have a host take so many MiB back."""
        return self._within(
            self._timeout,
            lambda: self._controller.reclaim_host(name=name, mib=mib, seconds=seconds, operation_id=operation_id),
        )

    def audit(self, *, repair: bool) -> dict[str, Any]:
        """Compare ledger, Placement, agents and devices now."""
        return self._within(self._audit, lambda: self._controller.audit(repair=repair))

    def failover(self, *, leader: str, to: str | None) -> None:
        """Have the leading controller hand over."""
        self._within(self._timeout, lambda: self._controller.failover(leader=leader, to=to))

    def _within(self, seconds: float, call: Callable[[], T]) -> T:
        if not self._slots.acquire(blocking=False):
            raise Unavailable(
                f"{HANGING_CALLS_MAX} calls of the controller hang already, this one was not sent; look at /healthcheck"
            )
        answer: Future[T] = Future()
        # A daemon: it must not keep a server that was told to stop.
        threading.Thread(target=self._run, args=(answer, call), name="controller-call", daemon=True).start()
        try:
            return answer.result(seconds)
        except TimeoutError:
            raise Unavailable(SILENT) from None

    def _run(self, answer: "Future[T]", call: Callable[[], T]) -> None:
        # The slot is free before the caller knows the outcome: who goes on at once must find it.
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - carried over to the caller's thread
            self._slots.release()
            answer.set_exception(error)
        else:
            self._slots.release()
            answer.set_result(result)
