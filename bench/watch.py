"""One thread that asks Nova what changed, on behalf of everybody who waits for a server."""

import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from keystoneauth1.exceptions import ClientException

OVERLAP_SECONDS = 2.0
"""Nova stamps changes in whole seconds, before it commits them."""

WIDE_EVERY, WIDE_SECONDS = 20, 120.0
"""Each so many polls ask far back, for a change that was committed late; to ask so each time would load Nova."""

Poll = Callable[[datetime], Iterable[Mapping[str, Any]]]


class Watcher:
    """Remembers the status of each server and when it was seen first. `poll` lists what changed since a time."""

    def __init__(self, poll: Poll, interval_seconds: float = 0.3) -> None:
        self._poll = poll
        self._interval = interval_seconds
        self._seen: dict[str, dict[str, float]] = {}
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._since = datetime.now(UTC)
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self.failed_polls = 0

    def __enter__(self) -> "Watcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """Stop asking, and let nobody wait any longer."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()

    def wait(self, server: str, statuses: Collection[str], seconds: float) -> tuple[str, float]:
        """Wait until a server is in one of `statuses`: which one, and the monotonic time at which it was seen.

        Raises TimeoutError.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._first(server, statuses) or self._stop.is_set(), seconds)
            found = self._first(server, statuses)
            if found is None:
                known = ", ".join(self._seen.get(server, {})) or "nothing"
                raise TimeoutError(f"not {' or '.join(sorted(statuses))} within {seconds:.0f} s; seen: {known}")
            return found

    def _first(self, server: str, statuses: Collection[str]) -> tuple[str, float] | None:
        seen = self._seen.get(server, {})
        return min(((s, at) for s, at in seen.items() if s in statuses), key=lambda item: item[1], default=None)

    def _run(self) -> None:
        for number in itertools.count(1):
            if self._stop.wait(self._interval):
                return
            overlap = OVERLAP_SECONDS if number % WIDE_EVERY else WIDE_SECONDS
            since, begun = self._since - timedelta(seconds=overlap), datetime.now(UTC)
            try:
                servers = list(self._poll(since))
            except ClientException:
                # The next poll asks from the same time on; who waits has a deadline.
                self.failed_polls += 1
                continue
            self._since = begun
            with self._changed:
                now = time.monotonic()
                for server in servers:
                    self._seen.setdefault(str(server["id"]), {}).setdefault(str(server["status"]), now)
                self._changed.notify_all()
