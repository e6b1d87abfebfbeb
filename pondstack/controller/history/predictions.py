"""What a leader does for predictions: reads Nova's past, computes decisions ahead, watches and trains models."""

from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy.orm import Session

from pondstack.controller.history.forecaster import Forecaster
from pondstack.controller.history.historian import Historian
from pondstack.controller.history.nightly import Nightly
from pondstack.controller.resources import ControllerResources
from pondstack.db.store import SQL
from pondstack.domain.allowance import Allowance
from pondstack.ledger.store import RememberedSplit
from pondstack.qos.sensitivity import SlowdownModel


class Predictions:
    """The three threads of one epoch."""

    def __init__(self, resources: ControllerResources, epoch: int, stopping: Callable[[], bool]) -> None:
        lease_seconds = resources.conf.ha.lease_seconds

        def fence(session: Session) -> None:
            SQL.check_epoch(session, epoch, lease_seconds)

        self._historian = Historian(resources, stopping)
        self._forecaster = Forecaster(resources, fence)
        self._nightly = Nightly(resources, fence)

    def describe(self) -> dict[str, Any] | None:
        """Return the predictor in force, as pondstack.prediction.serving.make_predictor takes it; None: not yet."""
        return self._forecaster.describe()

    def allowance(self) -> Allowance | None:
        """Return what the models may still risk, None while none serves."""
        return self._forecaster.allowance()

    def sensitivity(self) -> SlowdownModel | None:
        """Return what the serving model of latency sensitivity says of instances, None while none serves."""
        return self._forecaster.sensitivity()

    def note(self, items: Iterable[RememberedSplit]) -> None:
        """Take off the models' budget what instances were just placed with."""
        self._forecaster.note(items)

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
