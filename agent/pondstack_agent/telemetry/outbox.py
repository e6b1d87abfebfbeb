"""What was measured since the last batch: readings of the same thing are folded into one sample. Thread-safe."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from pondstack.domain.telemetry import HostMetric, Metric, Source
from pondstack.rpc.wire import HostReading, Sample

REPEAT_SECONDS = 1800.0
"""A reason that has not changed is told again after this long."""

Key = tuple[str, Metric, int | None]


@dataclass(slots=True)
class _Fold:
    at: float
    readings: int = 0
    minimum: float = 0.0
    total: float = 0.0
    maximum: float = 0.0
    reason: str = ""

    def add(self, value: float) -> None:
        self.minimum = min(self.minimum, value) if self.readings else value
        self.maximum = max(self.maximum, value) if self.readings else value
        self.total += value
        self.readings += 1


class Outbox:
    """Samples that wait to be sent. As many as there are guests, nodes and metrics, however long nobody takes them."""

    def __init__(self, clock: Callable[[], float], source: Source = Source.MEASURED) -> None:
        """`source`: where all of it comes from."""
        self._clock = clock
        self._source = source
        self._folds: dict[Key, _Fold] = {}
        self._told: dict[Key, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def add(self, consumer_uuid: str, metric: Metric, value: float, node: int | None = None) -> None:
        """Add a reading."""
        with self._lock:
            self._fold(consumer_uuid, metric, node).add(value)

    def missing(self, consumer_uuid: str, metric: Metric, reason: str, node: int | None = None) -> None:
        """Say why there is no reading; forgotten when another one of the same batch has a value."""
        with self._lock:
            self._fold(consumer_uuid, metric, node).reason = reason

    def _fold(self, consumer_uuid: str, metric: Metric, node: int | None) -> _Fold:
        now = self._clock()
        fold = self._folds.setdefault((consumer_uuid, metric, node), _Fold(now))
        fold.at = now
        return fold

    def take(self) -> list[Sample]:
        """Return all samples and forget them; a reason that was told lately is left out."""
        with self._lock:
            folds, self._folds = self._folds, {}
            now = self._clock()
            self._told = {key: told for key, told in self._told.items() if now - told[1] < REPEAT_SECONDS}
            return [
                _sample(key, fold, max(0.0, now - fold.at), self._source)
                for key, fold in folds.items()
                if self._new(key, fold)
            ]

    def _new(self, key: Key, fold: _Fold) -> bool:
        if fold.readings:
            self._told.pop(key, None)
            return True
        if self._told.get(key, ("", 0.0))[0] == fold.reason:
            return False
        self._told[key] = (fold.reason, self._clock())
        return True


def _sample(key: Key, fold: _Fold, age_seconds: float, source: Source) -> Sample:
    consumer_uuid, metric, node = key
    if not fold.readings:
        return Sample(consumer_uuid, str(metric), node, age_seconds, reason=fold.reason, source=str(source))
    return Sample(
        consumer_uuid=consumer_uuid,
        metric=str(metric),
        node=node,
        age_seconds=age_seconds,
        readings=fold.readings,
        minimum=fold.minimum,
        mean=fold.total / fold.readings,
        maximum=fold.maximum,
        source=str(source),
    )


class HostOutbox:
    """Readings of the host itself that wait to be sent: the newest of each metric. Thread-safe."""

    def __init__(self, clock: Callable[[], float], source: Source = Source.MEASURED) -> None:
        """`source`: where all of it comes from."""
        self._clock, self._source = clock, source
        self._readings: dict[HostMetric, tuple[float, float, Source]] = {}
        self._lock = threading.Lock()

    def add(self, metric: HostMetric, value: float, source: Source | None = None) -> None:
        """Put a reading in the place of a former one; `source`: None for that of all others."""
        with self._lock:
            self._readings[metric] = (value, self._clock(), source or self._source)

    def take(self) -> list[HostReading]:
        """Return all and forget them."""
        with self._lock:
            found, self._readings = self._readings, {}
            now = self._clock()
        return [
            HostReading(str(metric), value, max(0.0, now - at), str(source))
            for metric, (value, at, source) in found.items()
        ]
