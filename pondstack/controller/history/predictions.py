"""What a leader does for predictions: reads Nova's past, computes decisions ahead, watches and trains models."""

from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session

from pondstack.controller.history.forecaster import Forecaster
from pondstack.controller.history.historian import Historian
from pondstack.controller.history.nightly import Nightly
from pondstack.controller.resources import ControllerResources
from pondstack.db.store import SQL


class Predictions:
    """The three threads of one epoch."""

    def __init__(self, resources: ControllerResources, epoch: int, stopping: Callable[[], bool]) -> None:
        lease_seconds = resources.conf.ha.lease_seconds

        def fence(session: Session) -> None:
            SQL.check_epoch(session, epoch, lease_seconds)

        self._historian = Historian(resources, stopping)
        self._forecaster = Forecaster(resources)
        self._nightly = Nightly(resources, fence)

    def describe(self) -> dict[str, Any]:
        """Return the predictor in force, as pondstack.prediction.serving.make_predictor takes it."""
        return self._forecaster.describe()

    def wake(self) -> None:
        """Compute the decisions anew now: another model serves."""
        self._forecaster.wake()

    def start(self) -> None:
        """Begin."""
        self._historian.start()
        self._forecaster.start()
        self._nightly.start()

    def stop(self) -> None:
        """End each after what it does now; a training is killed."""
        self._nightly.stop()
        self._historian.stop()
        self._forecaster.stop()
