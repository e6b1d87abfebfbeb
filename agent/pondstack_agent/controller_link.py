"""The controller as the agent sees it: every failure is an error of pondstack's tree, and comes in bounded time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import oslo_messaging
from kombu.exceptions import OperationalError

from pondstack.domain import errors
from pondstack.rpc.bounded import BoundedCalls, CallOverdue, TooManyCalls, through
from pondstack.rpc.controller_api import ControllerAPI


def controller_link(controller: ControllerAPI, calls: BoundedCalls | None, deadline_seconds: float) -> ControllerAPI:
    """Return the client, each of whose calls ends within the deadline (`calls` None: runs in the caller's thread).

    They raise Unavailable when the controller does not answer in time, its own error when it refuses. A call that
    misses the deadline is left to end by itself; its operation id makes a late effect harmless.
    """

    def run(name: str, call: Callable[[], Any]) -> Any:
        with _translated(name):
            return call() if calls is None else calls.call(deadline_seconds, call)

    return through(controller, run)


@contextmanager
def _translated(method: str) -> Iterator[None]:
    try:
        yield
    except errors.PondError as error:
        raise errors.to_domain(error) from None
    except (CallOverdue, TooManyCalls, oslo_messaging.MessagingTimeout) as error:
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
