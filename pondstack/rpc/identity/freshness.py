"""Which messages are too old, and which came before: what was recorded on the bus is worth nothing later."""

import collections
import threading
import time
from collections.abc import Callable

from pondstack.domain.errors import Refused, StaleMessage


class Freshness:
    """Lets each signed message in once, within `window_seconds` of its signing. Thread-safe.

    What came before this process began is not known to it, so that messages signed before are refused, too: their
    senders sign anew (pondstack.rpc.identity.client). `clock`: seconds since 1970.
    """

    def __init__(self, window_seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._window = window_seconds
        self._clock = clock
        self._began = clock()
        self._seen: set[tuple[str, str]] = set()
        self._order: collections.deque[tuple[float, tuple[str, str]]] = collections.deque()
        self._lock = threading.Lock()

    def admit(self, sender: str, nonce: str, at: float) -> None:
        """Note a message; raises StaleMessage where it is not of now, Refused where it came before."""
        now = self._clock()
        if abs(now - at) > self._window:
            raise StaleMessage(
                f"a message of {sender} was signed {now - at:.1f} s before it was read, and {self._window:g} s are "
                "allowed; set the clocks (NTP) if that goes on"
            )
        if at < self._began:
            raise StaleMessage(f"a message of {sender} was signed before this process began; call again")
        with self._lock:
            self._forget(now)
            if (sender, nonce) in self._seen:
                raise Refused(f"a message of {sender} came twice: somebody repeats what was recorded on the bus")
            self._seen.add((sender, nonce))
            self._order.append((now, (sender, nonce)))

    def _forget(self, now: float) -> None:
        # Twice the window: a message may be signed by a clock that is ahead by one.
        while self._order and now - self._order[0][0] > 2 * self._window:
            self._seen.discard(self._order.popleft()[1])
