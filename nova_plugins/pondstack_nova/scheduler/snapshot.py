"""The scheduler's cached view of the rack, refreshed by one background thread per process; readers never wait for it.

Service down: the snapshot grows stale after [pondstack] snapshot_max_age_seconds and `current()` gives None. PondFilter
then lets hosts pass for all-local requests and rejects them for requests with pool memory.
"""

import os
import threading
import time
from collections.abc import Callable

import nova.conf
from oslo_log import log as logging

from pondstack.rpc.wire import Snapshot
from pondstack_nova import controller_client
from pondstack_nova.scheduler.rack import Rack

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

CALL_TIMEOUT_SECONDS = 5.0


class SnapshotCache:
    """Holds the latest Rack. `fetch` asks the controller; all times are in seconds of `clock`."""

    def __init__(
        self,
        fetch: Callable[[], Snapshot],
        *,
        interval_seconds: float,
        max_age_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._interval = interval_seconds
        self._max_age = max_age_seconds
        self._clock = clock
        self._changed = threading.Condition()
        self._wanted = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._rack: Rack | None = None
        self._asked_at = float("-inf")
        self._tries = 0
        self._failing = False

    def current(self) -> Rack | None:
        """Return the latest view, None when it is stale or was never had. Starts the refresh; never waits."""
        self._ensure_thread()
        if self._clock() - self._asked_at > self._max_age:
            return None
        return self._rack

    def newer(self, timeout_seconds: float) -> Rack | None:
        """Return a view that was asked for after this call began, or the current one when the time is over.

        All waiting requests share one call of the controller, made by the background thread.
        """
        self._ensure_thread()
        began = self._clock()
        with self._changed:
            tries = self._tries
            self._wanted.set()
            # Two tries, when one was under way already: that one may have been answered before we began.
            self._changed.wait_for(
                lambda: self._asked_at >= began or self._tries >= tries + 2 or self._stop.is_set(), timeout_seconds
            )
        return self.current()

    def refresh(self) -> bool:
        """Ask once (what the thread does); False when the controller gave no view, which is logged at the change."""
        asked_at = self._clock()
        try:
            rack = Rack(self._fetch())
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the bus, the thread must go on
            level = logging.DEBUG if self._failing or self._stop.is_set() else logging.WARNING
            LOG.log(level, "No snapshot from pondstack-controller: %s: %s", type(error).__name__, error)
            self._failing = True
            self._publish(None, asked_at)
            return False
        if self._failing:
            LOG.info("Snapshots from pondstack-controller are back")
            self._failing = False
        self._publish(rack, asked_at)
        return True

    def stop(self) -> None:
        """End the thread; it may still be in a call for some seconds."""
        self._stop.set()
        self._wanted.set()
        with self._changed:
            self._changed.notify_all()

    def _publish(self, rack: Rack | None, asked_at: float) -> None:
        with self._changed:
            self._tries += 1
            if rack is not None:
                self._rack, self._asked_at = rack, asked_at
            self._changed.notify_all()

    def _ensure_thread(self) -> None:
        if self._thread is not None:
            return
        with self._changed:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="pondstack-snapshot", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wanted.clear()
            self.refresh()
            self._wanted.wait(self._interval)


def _fetch_from_controller() -> Callable[[], Snapshot]:
    apis: list[controller_client.ControllerAPI] = []

    def fetch() -> Snapshot:
        # Made in the thread: connecting may block, and a failed attempt must be tried anew.
        if not apis:
            apis.append(controller_client.make_api())
        return apis[0].snapshot(timeout_seconds=CALL_TIMEOUT_SECONDS)

    return fetch


_lock = threading.Lock()
_by_process: dict[int, SnapshotCache] = {}


def cache() -> SnapshotCache:
    """Return this process's cache, made at first use: threads do not survive a fork."""
    pid = os.getpid()
    found = _by_process.get(pid)
    if found is not None:
        return found
    with _lock:
        if pid not in _by_process:
            _by_process.clear()
            _by_process[pid] = SnapshotCache(
                _fetch_from_controller(),
                interval_seconds=CONF.pondstack.snapshot_interval_seconds,
                max_age_seconds=CONF.pondstack.snapshot_max_age_seconds,
            )
        return _by_process[pid]


def reset(replacement: SnapshotCache | None = None) -> None:
    """Stop and forget the cache; tests may put another in its place."""
    with _lock:
        for old in _by_process.values():
            old.stop()
        _by_process.clear()
        if replacement is not None:
            _by_process[os.getpid()] = replacement
