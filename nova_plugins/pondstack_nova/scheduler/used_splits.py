"""What instances were placed with is told to the controller afterwards, by one background thread per process.

The way of a boot has no call for it. The controller may be away at that very time; what it was not told is told once
it answers. What a process that ends had not told is lost; then the controller remembers what the instance holds by
Placement and ledger, and not why.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import nova.conf
from oslo_log import log as logging

from pondstack.domain.errors import BadRequest
from pondstack.domain.known_split import KnownSplit
from pondstack.domain.sizing import Features, Split
from pondstack.prediction.serving import flavor_key
from pondstack.rpc.wire import UsedSplit
from pondstack_nova import controller_client
from pondstack_nova.scheduler.defaults import Origin
from pondstack_nova.scheduler.per_process import PerProcess

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

BATCH = 100
KEPT = 10_000
"""Splits that one process keeps while the controller is away; the oldest go first."""
CALL_TIMEOUT_SECONDS = 5.0

Tell = Callable[[Sequence[UsedSplit]], None]


@dataclass(frozen=True, slots=True)
class Decision:
    """How a request was split, from which features. `default_by`: who had a flavor without pond: specs split at all."""

    features: Features
    split: Split
    default_by: Origin | None = None


def put_on(spec: Any, decision: Decision | None) -> None:
    """Leave the decision on a RequestSpec, for the filter that sees each instance of the request."""
    spec._pondstack_decision = decision


def of(spec: Any) -> Decision | None:
    """Return the decision that was left on a RequestSpec."""
    found: Decision | None = getattr(spec, "_pondstack_decision", None)
    return found


class UsedSplits:
    """Splits that the controller has yet to be told of, the newest of each instance. Times: seconds of `clock`."""

    def __init__(
        self, tell: Tell, *, retry_seconds: Callable[[], float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._noted: dict[str, tuple[KnownSplit, float]] = {}
        self._untold: dict[str, tuple[UsedSplit, float]] = {}
        self._wanted = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failing = False

    def note(self, instance_uuid: str, decision: Decision) -> None:
        """Have the controller told what an instance is placed with; never waits."""
        used = UsedSplit(
            features=asdict(replace(decision.features, instance_uuid=instance_uuid)), **asdict(decision.split)
        )
        key, now = flavor_key(decision.features), self._clock()
        with self._lock:
            self._noted.pop(instance_uuid, None)
            self._noted[instance_uuid] = KnownSplit(instance_uuid, None, key, decision.split), now
            while len(self._noted) > KEPT:
                del self._noted[next(iter(self._noted))]
            self._untold.pop(instance_uuid, None)
            self._untold[instance_uuid] = used, now
            self._forget_oldest()
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="pondstack-used-splits", daemon=True)
                self._thread.start()
        self._wanted.set()

    def noted(self, instance_uuid: str, within_seconds: float = math.inf) -> KnownSplit | None:
        """Return what this process placed an instance with last, as far as it remembers, and if it was so lately."""
        with self._lock:
            found = self._noted.get(instance_uuid)
        return found[0] if found is not None and self._clock() - found[1] <= within_seconds else None

    def tell(self) -> bool:
        """Tell all there is (what the thread does); False when the controller was not told, which is logged."""
        while batch := self._take():
            now = self._clock()
            try:
                self._tell([replace(used, age_seconds=now - moment) for used, moment in batch.values()])
            except BadRequest as error:
                LOG.warning("pondstack-controller does not record %d splits: %s", len(batch), error)
            except Exception as error:  # noqa: BLE001 - a bus in trouble, a controller of a former release: the thread goes on
                level = logging.DEBUG if self._failing or self._stop.is_set() else logging.WARNING
                LOG.log(level, "Splits are told to pondstack-controller later: %s: %s", type(error).__name__, error)
                self._failing = True
                self._put_back(batch)
                return False
            self._failing = False
        return True

    def stop(self) -> None:
        """End the thread; it may still be in a call for some seconds."""
        self._stop.set()
        self._wanted.set()

    def _take(self) -> dict[str, tuple[UsedSplit, float]]:
        with self._lock:
            uuids = list(self._untold)[:BATCH]
            return {uuid: self._untold.pop(uuid) for uuid in uuids}

    def _put_back(self, batch: dict[str, tuple[UsedSplit, float]]) -> None:
        with self._lock:
            self._untold = batch | self._untold
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._untold) > KEPT:
            lost = next(iter(self._untold))
            del self._untold[lost]
            LOG.warning("pondstack-controller is not told what instance %s was placed with: too many wait", lost)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wanted.wait()
            self._wanted.clear()
            while not self._stop.is_set() and not self.tell():
                self._stop.wait(self._retry_seconds())


def _tell_the_controller() -> Tell:
    api = controller_client.lazy_api()
    return lambda splits: api().record_splits(splits=splits, timeout_seconds=CALL_TIMEOUT_SECONDS)


def _make() -> UsedSplits:
    return UsedSplits(_tell_the_controller(), retry_seconds=lambda: float(CONF.pondstack.split_retry_seconds) or 1.0)


_process: PerProcess[UsedSplits] = PerProcess(_make)
used_splits = _process.get
reset = _process.reset
