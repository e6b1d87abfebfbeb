"""The leader's account of the hard budget: what the models decided, what came of it, what they may still risk."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from oslo_log import log

from pondstack.controller.resources import ControllerResources
from pondstack.domain.allowance import Allowance
from pondstack.ledger.store import RememberedSplit
from pondstack.prediction.budget import Account, tallies
from pondstack.prediction.features import OLDEST

LOG = log.getLogger(__name__)


class ModelBudget:
    """Read anew with each round of the forecaster; in between, what schedulers tell is taken off. Thread-safe."""

    def __init__(self, resources: ControllerResources, clock: Callable[[], float] = time.monotonic) -> None:
        self._resources = resources
        self._clock = clock
        self._lock = threading.Lock()
        self._account: Account | None = None
        self._versions: tuple[str, ...] = ()
        self._told: dict[str, tuple[str, float]] = {}
        self._used_up = False

    def refresh(self, now: datetime, versions: tuple[str, ...], slowdowns: Mapping[str, float]) -> Account:
        """Read what came of the instances of four weeks, and say loudly when the budget is used up. Raises Unavailable.

        `versions`: of the models that serve, "" for none of a kind; `slowdowns`: of instances by now.
        """
        began = self._clock()
        conf = self._resources.conf
        decided = self._resources.reader.history.decided(now - OLDEST, conf.prediction.min_coverage)
        counted = tallies(decided, slowdowns, conf.model.proving_seconds)
        account = Account(counted, conf.model.target_percent, conf.model.trial_instances)
        with self._lock:
            self._account, self._versions = account, versions
            # What was told before is in the database, and so in the account.
            self._told = {uuid: item for uuid, item in self._told.items() if item[1] >= began}
        self._say(account, any(versions))
        return account

    def allowance(self) -> Allowance | None:
        """Return what may still be risked, None while no model serves."""
        with self._lock:
            if self._account is None or not any(self._versions):
                return None
            found = self._account.allowance(self._versions)
            return found.less(sum(found.cost(version) for version, _ in self._told.values()))

    def note(self, items: Iterable[RememberedSplit]) -> None:
        """Take off what instances were just placed with by a model's word."""
        moment = self._clock()
        with self._lock:
            for item in items:
                if item.split.model_version and item.split.pool_mib:
                    self._told[item.instance_uuid] = item.split.model_version, moment

    def _say(self, account: Account, serving: bool) -> None:
        used_up = serving and account.left <= 0
        if used_up and not self._used_up:
            LOG.error(
                "The models' budget is used up, every new auto instance gets all local memory: %s", account.describe()
            )
        elif self._used_up and not used_up:
            LOG.warning("The models' budget holds again: %s", account.describe())
        self._used_up = used_up
