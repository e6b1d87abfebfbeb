"""Calls that end in time, whatever the broker does.

oslo.messaging's time-out counts from the moment that the broker took the message: without a broker a call waits for
ever. So each call has a thread of its own, and its caller waits for so long as it wants to. A thread that hangs is left
to end when the broker is back; as many as a client allows may hang, then calls are refused at once. They are daemon
threads, and no pool's: a pool joins its threads at exit, and a process could not end while the broker is away.
"""

import functools
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any, TypeVar, cast

T = TypeVar("T")


class CallOverdue(Exception):
    """The call has not ended in its time. It may still take effect."""


class TooManyCalls(Exception):
    """As many calls as may hang already, do; this one was not made."""


class BoundedCalls:
    """Makes calls in threads; at most `at_once` of them at one time. Thread-safe."""

    def __init__(self, at_once: int, name: str = "bounded-call") -> None:
        self._free = threading.BoundedSemaphore(at_once)
        self._name = name

    def call(self, seconds: float, call: Callable[[], T]) -> T:
        """Return what `call` returns, within `seconds`; raises CallOverdue, TooManyCalls, and what `call` raises."""
        if not self._free.acquire(blocking=False):
            raise TooManyCalls("too many calls hang already")
        answer: futures.Future[T] = futures.Future()
        threading.Thread(target=self._run, args=(answer, call), name=self._name, daemon=True).start()
        if futures.wait([answer], seconds).not_done:
            raise CallOverdue(f"no answer within {seconds:.3f} s")
        return answer.result()

    def _run(self, answer: "futures.Future[T]", call: Callable[[], T]) -> None:
        # The slot is free before the caller knows the outcome: who goes on at once must find it.
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 (carried over to the caller's thread)
            self._free.release()
            answer.set_exception(error)
        else:
            self._free.release()
            answer.set_result(result)


class _Through:
    """Has each method of an object made by `run(name, call)`."""

    def __init__(self, client: Any, run: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._client = client
        self._run = run

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        @functools.wraps(method)
        def through(*arguments: Any, **named: Any) -> Any:
            return self._run(name, lambda: method(*arguments, **named))

        return through


def through(client: T, run: Callable[[str, Callable[[], Any]], Any]) -> T:
    """Return an object with the methods of `client`, each of which calls `run(name, call)` to make the call."""
    return cast(T, _Through(client, run))
