"""What the model of one kind says for all projects and sizes. Whatever is wrong with it, the other one goes on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from oslo_log import log

from pondstack.controller.resources import ControllerResources
from pondstack.db.store import registry
from pondstack.db.store.registry import StoredModel
from pondstack.domain.errors import PondError, Unavailable
from pondstack.domain.history import Selection
from pondstack.prediction import latency, runtime, sensitivity, table, trainer
from pondstack.prediction.choice import curve_of
from pondstack.prediction.examples import request_of, usable
from pondstack.prediction.features import OLDEST, History, records
from pondstack.prediction.table import Part
from pondstack.prediction.trainer import Running

LOG = log.getLogger(__name__)

COUNTERS_AGE = timedelta(seconds=900)
"""Counters are summed up with each period of telemetry, an hour by default: more often, nothing new is read."""


class Forecast(ABC):
    """Holds the last good part of the table, and the manifest of the model that made it; None: no model serves."""

    kind: str

    def __init__(self, resources: ControllerResources) -> None:
        self._resources = resources
        self.part: Part | None = None
        self.manifest: Mapping[str, Any] | None = None
        self.why_none = "it was not looked for yet"
        self._trouble = ""

    @property
    def version(self) -> str:
        """Return the version that serves, "" for none."""
        return "" if self.part is None else str(self.part["version"])

    def refresh(self, now: datetime) -> None:
        """Ask the model anew; one that is broken leaves what was said last, loudly. Raises Unavailable."""
        missing = runtime.missing()
        if missing:
            self._drop(f"{', '.join(missing)} is not installed (extra ml)")
            return
        serving = self._resources.database.read(lambda session: registry.serving(session, self.kind))
        if serving is None:
            self._drop("no model runs (pondstack-manage model train)")
            return
        try:
            self.part = self._make(serving, now)
            self.manifest = serving.record.manifest
            self._trouble = ""
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - what a broken model or manifest raises is anybody's guess
            self._complain(serving.record.version, error)

    def _drop(self, why: str) -> None:
        self.part = self.manifest = None
        self.why_none = why

    def _complain(self, version: str, error: Exception) -> None:
        text = error.message if isinstance(error, PondError) else f"{type(error).__name__}: {error}"
        if self.part is None:
            self.why_none = f"model {version} is broken"
        if text == self._trouble:
            return
        self._trouble = text
        what = f"what model {self.version} said last" if self.part else "nothing of its kind"
        LOG.error("Model %s (%s) is broken and says nothing; %s serves: %s", version, self.kind, what, text)

    @abstractmethod
    def _make(self, serving: StoredModel, now: datetime) -> Part:
        """Return the part of the table; raises whatever a broken model does."""


class UntouchedForecast(Forecast):
    """Of the model of untouched memory."""

    kind = trainer.KIND

    def _make(self, serving: StoredModel, now: datetime) -> Part:
        conf, manifest = self._resources.conf.prediction, serving.record.manifest
        list(curve_of(manifest))
        chosen = Selection(since=now - OLDEST, until=now, min_coverage=conf.min_coverage)
        found = self._resources.reader.history.lifetimes(chosen)
        lifetimes = list(usable(found, synthetic=sensitivity.is_synthetic(manifest)))
        return table.untouched(
            Running.load(manifest, serving.blob).model,
            serving.record.version,
            manifest,
            History(records(lifetimes, now, conf.min_coverage)),
            [request_of(item) for item in lifetimes],
            now,
        )


class SensitivityForecast(Forecast):
    """Of the model of latency sensitivity. `slowdowns`: what it says of each instance, in percent, by UUID."""

    kind = latency.KIND

    def __init__(self, resources: ControllerResources) -> None:
        super().__init__(resources)
        self.slowdowns: Mapping[str, float] = {}
        self._made_at: datetime | None = None

    def _make(self, serving: StoredModel, now: datetime) -> Part:
        version, manifest = serving.record.version, serving.record.manifest
        if self.part is not None and self.version == version and self._made_at and now - self._made_at < COUNTERS_AGE:
            return self.part
        for pdm in manifest["curves"]:
            latency.points_of(manifest, float(pdm))
        model = latency.load(manifest, serving.blob)
        found = self._resources.reader.history.counters(now - OLDEST)
        guests = sensitivity.usable(found, manifest)
        slowdowns = sensitivity.slowdowns(model, guests)
        part = sensitivity.table(version, guests, slowdowns)
        self.slowdowns, self._made_at = slowdowns, now
        return part
