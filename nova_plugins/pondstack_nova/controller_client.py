"""The plugins' way to pondstack-controller: one client per process, and a budget that holds whatever the broker does.

Each call is bounded (pondstack.rpc.bounded), and after some failures in a row a breaker leaves the controller alone for
a while.
"""

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import nova.conf
import oslo_messaging

from pondstack.conf import scheduler as conf
from pondstack.domain.errors import PondError, Unavailable
from pondstack.domain.sizing import Fallback
from pondstack.rpc import transport as rpc
from pondstack.rpc.bounded import BoundedCalls, CallOverdue, TooManyCalls
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.wire import SplitAnswer
from pondstack_nova.breaker import Breaker

CONF = nova.conf.CONF
conf.register_opts(CONF)

CALLS_AT_ONCE = 32


class NoAnswer(Exception):
    """The controller did not answer; `reason` is a short stable word for the counter and the record."""

    def __init__(self, reason: Fallback, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


def make_api() -> ControllerAPI:
    """Return a client on pondstack's bus (nova's, unless [pondstack] transport_url says otherwise)."""
    return ControllerAPI(rpc.get_transport(CONF, CONF.pondstack.transport_url))


class BudgetedController:
    """Calls of the controller that end within a budget. Thread-safe; must be made after the process has forked."""

    def __init__(
        self, api: Callable[[], ControllerAPI] = make_api, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = functools.cache(api)
        self._breaker = Breaker(clock, lambda: float(CONF.pondstack.split_retry_seconds))
        self._calls = BoundedCalls(CALLS_AT_ONCE, "pondstack-split")

    def get_split(self, features: dict[str, Any], timeout_seconds: float) -> SplitAnswer:
        """Ask for a split.

        Raises NoAnswer (time-out, transport, controller not ready) and the controller's own verdicts: PoolShortage,
        BadRequest and other PondError.
        """
        if not self._breaker.admit():
            raise NoAnswer(
                Fallback.BREAKER_OPEN, "the controller failed several times in a row and is left alone for a while"
            )
        try:
            answer = self._call(features, timeout_seconds)
        except NoAnswer:
            self._breaker.failed()
            raise
        except PondError:
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return answer

    def _call(self, features: dict[str, Any], timeout_seconds: float) -> SplitAnswer:
        def get_split() -> SplitAnswer:
            return self._api().get_split(features=features, timeout_seconds=timeout_seconds)

        try:
            return self._calls.call(timeout_seconds, get_split)
        except TooManyCalls as error:
            raise NoAnswer(Fallback.BUSY, "too many calls of the controller hang already") from error
        except (CallOverdue, TimeoutError, oslo_messaging.MessagingTimeout) as error:
            raise NoAnswer(Fallback.TIMEOUT, f"no answer within {timeout_seconds:.3f} s") from error
        except Unavailable as error:
            raise NoAnswer(Fallback.UNAVAILABLE, error.message) from error
        except PondError:
            raise
        except oslo_messaging.RemoteError as error:
            raise NoAnswer(Fallback.REMOTE_ERROR, f"{error.exc_type}: {error.value}") from error
        except Exception as error:
            # Any failure of the bus or of the answer means: place it all local.
            raise NoAnswer(Fallback.TRANSPORT, f"{type(error).__name__}: {error}") from error


_lock = threading.Lock()
_by_process: dict[int, BudgetedController] = {}


def controller() -> BudgetedController:
    """Return this process's client, made at first use: threads and connections do not survive a fork."""
    pid = os.getpid()
    with _lock:
        if pid not in _by_process:
            _by_process.clear()
            _by_process[pid] = BudgetedController()
        return _by_process[pid]


def reset() -> None:
    """Forget the client (tests, and a changed transport_url)."""
    with _lock:
        _by_process.clear()
