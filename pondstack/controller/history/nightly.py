"""The leader's thread that watches the serving model for drift and trains another one, once a day each."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.bounded_process import OnlyChild
from pondstack.controller.history import candidates
from pondstack.controller.history.drift import DriftWatch
from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import PeriodicWorker
from pondstack.db.store import registry
from pondstack.domain.errors import BadRequest, Conflict, PondError, Unavailable
from pondstack.domain.history import Selection
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.prediction import runtime
from pondstack.prediction.examples import usable
from pondstack.prediction.trainer import KIND

LOG = log.getLogger(__name__)
ROUND_SECONDS = 300.0
WATCH_SECONDS = 86400.0
STOP_SECONDS = 1.0
"""How long stop() waits for a round under way; its child is killed, and a former leader stores nothing."""


def due(now: datetime, hour: int, last: float) -> bool:
    """Return whether a training is due: none ended (`last`, seconds since the epoch) since that hour came last."""
    if hour < 0:
        return False
    begin = now.replace(hour=hour, minute=0, second=0, microsecond=0)
    if begin > now:
        begin -= timedelta(days=1)
    return last < begin.timestamp()


class Nightly:
    """One round each few minutes, which mostly finds that nothing is due."""

    def __init__(self, resources: ControllerResources, fence: Callable[[Session], object]) -> None:
        """`fence(session)` raises NotLeader in the transaction of a former leader."""
        self._resources = resources
        self._fence = fence
        self._drift = DriftWatch(resources, fence)
        self._watched: float | None = None
        self._since = time.time()
        self._child = OnlyChild()
        self._worker = PeriodicWorker("nightly", ROUND_SECONDS, self.run)

    def start(self) -> None:
        """Begin with a round."""
        self._worker.start()

    def stop(self) -> None:
        """End; a training under way is killed, and promotes nothing."""
        self._child.stop()
        self._worker.stop(STOP_SECONDS)

    def run(self) -> None:
        """Do what is due. Raises Unavailable, NotLeader."""
        if runtime.missing():
            return  # the forecaster says so
        last = self._resources.database.read(lambda session: registry.last_made(session, KIND))
        now = datetime.now(UTC)
        # A cloud that never trained has hardly begun, with nothing to learn from: the next night is soon enough.
        train = due(now, self._resources.conf.model.train_at_hour, self._since if last is None else last)
        if train or self._watched is None or time.monotonic() - self._watched >= WATCH_SECONDS:
            self._watch()
        if train and not self._child.stopping:
            self._train(now)

    def _watch(self) -> None:
        try:
            self._drift.run()
        except (BadRequest, Conflict) as error:  # nothing that a new training would not mend
            LOG.warning("The model that serves was not watched for drift: %s", error.message)
        self._watched = time.monotonic()

    def _train(self, now: datetime) -> None:
        conf, database = self._resources.conf, self._resources.database
        serving = database.read(lambda session: registry.serving(session, KIND))
        since = now - timedelta(seconds=conf.model.window_seconds)
        chosen = Selection(since=since, until=now, min_coverage=conf.prediction.min_coverage, marks=True)
        found = usable(self._resources.reader.history.lifetimes(chosen), synthetic=False)
        slice_mib = DEFAULT_SLICE_MIB if serving is None else serving.record.manifest["slice_mib"]
        try:
            candidate = candidates.train(conf, found, serving, now, slice_mib, self._child.started)
        except (BadRequest, Unavailable) as error:
            if not self._child.stopping:
                self._failed(now, error)
            return
        finally:
            self._child.ended()
        verdict = candidate.manifest["verdict"]
        better = verdict["better"]
        try:
            version = candidates.keep(database, candidate, serving, now, serve=better, fence=self._fence)
        except Conflict as error:
            self._failed(now, error)
            return
        what = "is promoted" if better else f"is not promoted, not better than {', '.join(verdict['not_better_than'])}"
        LOG.info("The nightly model %s %s; %s", version, what, verdict["text"])

    def _failed(self, now: datetime, error: PondError) -> None:
        def work(session: Session) -> None:
            self._fence(session)
            registry.note_failure(session, KIND, now, error.message)

        self._resources.database.write(work)
        LOG.warning(
            "The nightly training failed, and what serves stays: %s. The next one is at %02d:00 UTC; pondstack-manage "
            "model train tries again now",
            error.message,
            self._resources.conf.model.train_at_hour,
        )
