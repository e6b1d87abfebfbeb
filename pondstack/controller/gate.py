"""The gate of a leader's endpoints: open while the lease is sure, shut for good before the lease is handed over."""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

import oslo_messaging

from pondstack.domain.conform import checked
from pondstack.domain.errors import NotLeader, PondError

Method = TypeVar("Method", bound=Callable[..., Any])


class Gate:
    """Lets requests in and counts those under way; thread-safe. `check` raises NotLeader when the lease is not sure."""

    def __init__(self, check: Callable[[], object] = lambda: None) -> None:
        self._check = check
        self._changed = threading.Condition()
        self._shut = ""
        self._inside = 0

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Be inside for the length of a request; raises NotLeader, which its client answers by calling again."""
        with self._changed:
            if self._shut:
                raise NotLeader(f"{self._shut}; call again, the leader answers")
            self._check()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self, reason: str) -> None:
        """Refuse all requests from now on; idempotent."""
        with self._changed:
            self._shut = self._shut or reason

    def drained(self, seconds: float) -> bool:
        """Wait until no request is under way; returns whether that was within `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._inside, seconds)


class Gated(Protocol):
    """An endpoint behind a gate."""

    gate: Gate


def gated(method: Method) -> Method:
    """Have a method answer only while the gate is open; our own errors cross RPC as answers.

    Arguments of other types than it declares are refused: BadRequest.
    """

    checking = checked(method)

    @functools.wraps(method)
    def guarded(self: Gated, context: Any, **arguments: Any) -> Any:
        with self.gate.passing():
            return checking(self, context, **arguments)

    return cast(Method, functools.wraps(method)(oslo_messaging.expected_exceptions(PondError)(guarded)))
