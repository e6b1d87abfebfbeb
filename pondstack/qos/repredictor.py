"""One round of re-prediction: reads long-lived VMs, predicts them again, keeps what could be pooled."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from oslo_config import cfg
from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.store import repredictions
from pondstack.domain.history import Selection
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.ledger.qos_records import LongLived, Reprediction
from pondstack.ledger.reader import Reader
from pondstack.prediction.lifetime import Remainders
from pondstack.qos.repredict import Rule, predict_again

LOG = log.getLogger(__name__)

WINDOW = timedelta(days=30)
"""How far back lives are looked at for a remaining lifetime."""
MOST_LIVES = 10_000
"""The newest so many: enough for a curve."""


class Repredictor:
    """For one thread; `fence(session)` raises NotLeader in the transaction of a former leader."""

    def __init__(
        self, conf: cfg.ConfigOpts, database: Database, reader: Reader, fence: Callable[[Session], object]
    ) -> None:
        self._conf = conf
        self._database = database
        self._reader = reader
        self._fence = fence
        self._told: tuple[int, int] | None = None

    def run(self) -> None:
        """Predict all again. Raises Unavailable, NotLeader."""
        group, now = self._conf.qos, datetime.now(UTC)
        after, period = group.repredict_after_seconds, self._conf.telemetry.period_seconds
        guests = self._database.read(lambda session: repredictions.long_lived(session, after, period))
        remaining = self._remainders(now) if guests else None

        def left(item: LongLived) -> float | None:
            if remaining is None:
                return None
            return remaining.median_seconds(item.project_id, item.flavor_name, now.timestamp() - item.created_at)

        slice_mib = max((pool.slice_mib for pool in self._reader.pools()), default=DEFAULT_SLICE_MIB)
        rule = Rule(after, group.repredict_margin_percent, slice_mib)
        found = predict_again(guests, rule, left, now.timestamp())
        self._database.write(lambda session: self._keep(session, found))
        self._say(found)

    def _remainders(self, now: datetime) -> Remainders | None:
        history = self._reader.history
        complete = history.complete_since()
        if complete is None:
            return None
        since = max(complete, now - WINDOW)
        return Remainders(history.lifetimes(Selection(since, now, limit=MOST_LIVES)), since, now)

    def _keep(self, session: Session, found: Sequence[Reprediction]) -> None:
        self._fence(session)
        repredictions.keep(session, found)

    def _say(self, found: Sequence[Reprediction]) -> None:
        told = len(found), sum(item.reclaimable_mib for item in found)
        if told != self._told:
            LOG.info("%d long-lived instances were predicted again, %d MiB of them could come from a pool", *told)
        self._told = told
