"""The leader's thread that computes the serving model's decisions ahead; schedulers get them with their view."""

from datetime import UTC, datetime
from typing import Any

from oslo_log import log

from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import PeriodicWorker
from pondstack.db.store import registry
from pondstack.domain.history import Selection
from pondstack.domain.telemetry import Source
from pondstack.prediction import runtime, table
from pondstack.prediction.examples import request_of, usable
from pondstack.prediction.features import OLDEST, History, records
from pondstack.prediction.serving import static_predictor
from pondstack.prediction.trainer import KIND, Running

LOG = log.getLogger(__name__)
STOP_SECONDS = 1.0
"""How long stop() waits for a round under way, which writes nothing."""


class Forecaster:
    """Keeps the description of the predictor in force: the model's table, or the static share, which it says loudly."""

    def __init__(self, resources: ControllerResources) -> None:
        self._resources = resources
        self._table: dict[str, Any] | None = None
        self._told = ""
        self._worker = PeriodicWorker("forecaster", resources.conf.model.refresh_seconds, self.refresh)

    def start(self) -> None:
        """Begin with a round."""
        self._worker.start()

    def wake(self) -> None:
        """Have a round soon: another model serves."""
        self._worker.wake()

    def stop(self) -> None:
        """End after the round under way."""
        self._worker.stop(STOP_SECONDS)

    def describe(self) -> dict[str, Any]:
        """Return what pondstack.prediction.serving.make_predictor takes."""
        percent = self._resources.conf.sizing.static_pool_percent
        made = self._table
        return static_predictor(percent) if made is None else {**made, "percent": percent}

    def refresh(self) -> None:
        """Compute the table anew. Raises Unavailable, and BadRequest for no good model: the last table stays."""
        missing = runtime.missing()
        if missing:
            self._serve(None, f"{', '.join(missing)} is not installed (extra ml)")
            return
        serving = self._resources.database.read(lambda session: registry.serving(session, KIND))
        if serving is None:
            self._serve(None, "no model runs (pondstack-manage model train)")
            return
        conf, now = self._resources.conf.prediction, datetime.now(UTC)
        record, manifest = serving.record, serving.record.manifest
        chosen = Selection(since=now - OLDEST, until=now, min_coverage=conf.min_coverage)
        found = self._resources.reader.history.lifetimes(chosen)
        lifetimes = list(usable(found, synthetic=Source.SYNTHETIC in manifest["data"]["lifetimes"]))
        made = table.build(
            Running.load(manifest, serving.blob).model,
            record.version,
            manifest,
            History(records(lifetimes, now, conf.min_coverage)),
            [request_of(item) for item in lifetimes],
            now,
            manifest["slice_mib"],
        )
        self._serve(made, record.version)

    def _serve(self, made: dict[str, Any] | None, what: str) -> None:
        self._table = made
        if what == self._told:
            return
        self._told = what
        if made is None:
            LOG.warning("Every auto instance gets the static share of its memory from a pool: %s", what)
        else:
            LOG.info("Model %s decides what auto instances get from a pool", what)
