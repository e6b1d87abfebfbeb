"""The second opinion on sensitivity: the newest light or analytic model of the registry that does not serve.

The forest needs all counters that it learnt from; a light model (Memstrata, section 5) or an analytic one (CAMP) needs
four, and so may know guests of which the forest knows nothing.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.store import registry
from pondstack.db.store.registry import ModelState, StoredModel
from pondstack.domain.errors import Unavailable
from pondstack.ledger.reader import HistoryReader
from pondstack.prediction import latency, runtime, sensitivity
from pondstack.prediction.choice import Limits, choose
from pondstack.prediction.features import OLDEST
from pondstack.prediction.latency import ANALYTIC, KIND, LIGHT
from pondstack.prediction.risk import Risks
from pondstack.prediction.trainer import balance_as_json
from pondstack.qos.sensitivity import SlowdownModel

LOG = log.getLogger(__name__)

AGE_SECONDS = 900.0
"""Counters are summed up with each period of telemetry: more often, nothing new is read."""
USABLE = (ModelState.CANDIDATE, ModelState.RETIRED)


class Outliers:
    """Asks the model anew every AGE_SECONDS; for one thread. A model that is broken says nothing, loudly."""

    def __init__(self, database: Database, history: HistoryReader, limits: Callable[[], Limits]) -> None:
        self._database = database
        self._history = history
        self._limits = limits
        self._asked_at: float | None = None
        self._model: SlowdownModel | None = None

    def model(self) -> SlowdownModel | None:
        """Return what the model says, None: there is none. Raises Unavailable."""
        if self._asked_at is None or time.monotonic() - self._asked_at >= AGE_SECONDS:
            self._model = self._ask()
            self._asked_at = time.monotonic()
        return self._model

    def _ask(self) -> SlowdownModel | None:
        if runtime.missing():
            return None
        version = self._database.read(_newest)
        if version is None:
            return None
        try:
            return self._said(self._database.read(lambda session: registry.load(session, version)))
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - what a broken model or manifest raises is anybody's guess
            LOG.error("Model %s is no second opinion, it is broken: %s", version, error)
            return None

    def _said(self, stored: StoredModel) -> SlowdownModel:
        manifest: dict[str, Any] = stored.record.manifest
        points = choose(None, manifest, self._limits())
        risks = Risks({pdm: balance_as_json(balance) for pdm, balance in points.items()})
        found = self._history.counters(datetime.now(UTC) - OLDEST)
        guests = sensitivity.usable(found, manifest)
        slowdowns = sensitivity.slowdowns(latency.load(manifest, stored.blob), guests)
        return SlowdownModel(stored.record.version, slowdowns, lambda pdm: risks.of(pdm).threshold)


def _newest(session: Session) -> str | None:
    for record in registry.models(session):
        if record.kind == KIND and record.state in USABLE and record.manifest.get("predictor") in (LIGHT, ANALYTIC):
            return record.version
    return None
