"""The scheduler's cached view of hosts and pools, for PondFilter and the weighers."""

import time
from collections.abc import Callable

import nova.conf

from pondstack.rpc.wire import Snapshot
from pondstack_nova import controller_client
from pondstack_nova.scheduler.per_process import PerProcess
from pondstack_nova.scheduler.rack import Rack
from pondstack_nova.scheduler.refreshed import Refreshed

CONF = nova.conf.CONF

CALL_TIMEOUT_SECONDS = 5.0


class SnapshotCache(Refreshed[Rack]):
    """Holds the latest Rack. `fetch` asks the controller; all times are in seconds of `clock`."""

    def __init__(
        self,
        fetch: Callable[[], Snapshot],
        *,
        interval_seconds: float,
        max_age_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            "snapshot",
            lambda _now: Rack(fetch()),
            interval_seconds=interval_seconds,
            max_age_seconds=max_age_seconds,
            clock=clock,
        )


def _fetch_from_controller() -> Callable[[], Snapshot]:
    api = controller_client.lazy_api()

    def fetch() -> Snapshot:
        snapshot = api().snapshot(timeout_seconds=CALL_TIMEOUT_SECONDS)
        controller_client.REVOCATIONS.learn(snapshot.revoked)
        return snapshot

    return fetch


def _make() -> SnapshotCache:
    return SnapshotCache(
        _fetch_from_controller(),
        interval_seconds=CONF.pondstack.snapshot_interval_seconds,
        max_age_seconds=CONF.pondstack.snapshot_max_age_seconds,
    )


_process: PerProcess[SnapshotCache] = PerProcess(_make)
cache = _process.get
reset = _process.reset
