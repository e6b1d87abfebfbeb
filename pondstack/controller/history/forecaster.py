"""The leader's thread that computes the serving models' decisions ahead; schedulers get them with their view.

Each round solves Eq. 1 anew, on the curves of the models that serve now, and reads the account of the budget.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.controller.history.forecast import SensitivityForecast, UntouchedForecast
from pondstack.controller.history.model_budget import ModelBudget
from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import PeriodicWorker
from pondstack.db.store import registry
from pondstack.domain.allowance import Allowance
from pondstack.ledger.store import RememberedSplit
from pondstack.prediction import table
from pondstack.prediction.balance import Balance
from pondstack.prediction.budget import Account
from pondstack.prediction.choice import Limits, choose
from pondstack.prediction.risk import Risks
from pondstack.prediction.serving import static_predictor
from pondstack.prediction.trainer import balance_as_json
from pondstack.qos.sensitivity import SlowdownModel

LOG = log.getLogger(__name__)
STOP_SECONDS = 1.0
"""How long stop() waits for a round under way; what a former leader would note is fenced."""


class Forecaster:
    """Keeps the description of the predictor in force: the models' table, or the static share, which it says loudly."""

    def __init__(self, resources: ControllerResources, fence: Callable[[Session], object]) -> None:
        """`fence(session)` raises NotLeader in the transaction of a former leader."""
        self._resources = resources
        self._fence = fence
        self._untouched = UntouchedForecast(resources)
        self._sensitivity = SensitivityForecast(resources)
        self._budget = ModelBudget(resources)
        self._table: dict[str, Any] | None = None
        self._risks: Risks | None = None
        self._ready = False
        self._told = ""
        self._noted: dict[str, dict[str, Any]] = {}
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

    def describe(self) -> dict[str, Any] | None:
        """Return what pondstack.prediction.serving.make_predictor takes; None before the first round has ended."""
        if not self._ready:
            return None
        made = self._table
        return static_predictor(self._static_percent()) if made is None else made

    def allowance(self) -> Allowance | None:
        """Return what the models may still risk, None while none serves."""
        return self._budget.allowance()

    def note(self, items: Iterable[RememberedSplit]) -> None:
        """Take off the budget what instances were just placed with."""
        self._budget.note(items)

    def sensitivity(self) -> SlowdownModel | None:
        """Return what the serving model of latency sensitivity says of instances, None while none serves."""
        version, risks = self._sensitivity.version, self._risks
        if not version or risks is None:
            return None
        return SlowdownModel(version, self._sensitivity.slowdowns, lambda pdm: risks.of(pdm).threshold)

    def refresh(self) -> None:
        """Compute the table anew. Raises Unavailable: the last table stays."""
        now = datetime.now(UTC)
        self._untouched.refresh(now)
        self._sensitivity.refresh(now)
        limits = Limits.of(self._resources.conf.model)
        chosen = choose(self._untouched.manifest, self._sensitivity.manifest, limits)
        versions = (self._untouched.version, self._sensitivity.version)
        account = self._budget.refresh(now, versions, self._sensitivity.slowdowns)
        self._table = self._join(chosen) if any(versions) else None
        self._risks = Risks({pdm: balance_as_json(balance) for pdm, balance in chosen.items()})
        self._ready = True
        self._say()
        self._note_serving(chosen, account)

    def _join(self, chosen: dict[str, Balance]) -> dict[str, Any]:
        return table.join(
            self._untouched.part,
            self._sensitivity.part,
            chosen,
            percent=self._static_percent(),
            min_local_percent=self._resources.conf.model.min_local_percent,
        )

    def _static_percent(self) -> int:
        return int(self._resources.conf.sizing.static_pool_percent)

    def _note_serving(self, chosen: dict[str, Balance], account: Account) -> None:
        """Have the registry tell what serves now; only where it is another thing than the last time."""
        points = {pdm: balance_as_json(balance) for pdm, balance in chosen.items()}
        models = {item.kind: item.version for item in (self._untouched, self._sensitivity) if item.version}
        found = {"models": models, "points": points, "budget": account.to_json()}
        new = {version: found for version in models.values() if self._noted.get(version) != found}
        if not new:
            return

        def work(session: Session) -> None:
            self._fence(session)
            for version in new:
                registry.note_serving(session, version, found)

        self._resources.database.write(work)
        self._noted = dict.fromkeys(models.values(), found)

    def _say(self) -> None:
        """Log who decides, where that has changed; loudly where it is no model."""
        parts = {"untouched memory": self._untouched, "latency sensitivity": self._sensitivity}
        told = "; ".join(f"{what}: {part.version or part.why_none}" for what, part in parts.items())
        if told == self._told:
            return
        self._told = told
        if self._table is None:
            LOG.warning("Every auto instance gets the static share of its memory from a pool: %s", told)
        else:
            LOG.info("Models decide what auto instances get from a pool: %s", told)
