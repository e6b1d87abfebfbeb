"""The leader's thread that reads Nova's past; none where Nova's API is not to be asked."""

from collections.abc import Callable

from pondstack.controller.history.backfill import Backfill
from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import PeriodicWorker

STOP_SECONDS = 1.0
"""How long stop() waits for a round under way; it writes nothing that a former leader may not."""


class Historian:
    """Begins with a round, and goes on every [prediction] backfill_seconds."""

    def __init__(self, resources: ControllerResources, stopping: Callable[[], bool]) -> None:
        group = resources.conf.prediction
        self._worker: PeriodicWorker | None = None
        if resources.nova is not None:
            backfill = Backfill(resources.history, resources.nova, lambda: int(group.keep_history_seconds), stopping)
            self._worker = PeriodicWorker("history", group.backfill_seconds, backfill.run)

    def start(self) -> None:
        """Begin."""
        if self._worker is not None:
            self._worker.start()

    def stop(self) -> None:
        """End after the page under way."""
        if self._worker is not None:
            self._worker.stop(STOP_SECONDS)
