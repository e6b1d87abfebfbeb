"""The drift watch: what the model that serves does to the newest instances, against the budget; beyond it, it goes."""

from collections.abc import Callable
from datetime import UTC, datetime

from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.controller.history.candidates import settings_of
from pondstack.controller.resources import ControllerResources
from pondstack.db.store import registry
from pondstack.db.store.registry import StoredModel
from pondstack.domain.history import Selection
from pondstack.domain.telemetry import Source
from pondstack.prediction.examples import begun, examples, usable
from pondstack.prediction.features import OLDEST
from pondstack.prediction.trainer import KIND, Running, replay
from pondstack.prediction.untouched import Result

LOG = log.getLogger(__name__)


class DriftWatch:
    """Replays the serving model on instances that ended since its promotion, four weeks back at most."""

    def __init__(self, resources: ControllerResources, fence: Callable[[Session], object]) -> None:
        """`fence(session)` raises NotLeader in the transaction of a former leader."""
        self._resources = resources
        self._fence = fence

    def run(self) -> None:
        """Judge once, and demote. Raises Unavailable, NotLeader, and BadRequest for what is no model."""
        serving = self._resources.database.read(lambda session: registry.serving(session, KIND))
        if serving is None:
            return
        now = datetime.now(UTC)
        found = self._realised(serving, now)
        conf = self._resources.conf
        budget = settings_of(conf, serving.record.manifest["slice_mib"]).budget
        version = serving.record.version
        told = (
            f"{found.over} over-predictions of {found.instances} instances (OP {found.op:.1f} %), budget {budget:g} %"
        )
        if found.within(budget):
            LOG.info("Model %s keeps to its budget on the newest instances: %s", version, told)
            return
        why = {
            "text": f"demoted at {now.isoformat(timespec='seconds')} for drift: {told}",
            "at": now.isoformat(),
            "instances": found.instances,
            "over": found.over,
            "budget_percent": budget,
        }

        def work(session: Session) -> str | None:
            self._fence(session)
            return registry.demote(session, version, why)

        back = self._resources.database.write(work)
        LOG.warning(
            "Model %s is demoted, it drifted: %s; %s serves now (see pondstack-manage model list)",
            version,
            told,
            back or "the static share",
        )

    def _realised(self, serving: StoredModel, now: datetime) -> Result:
        conf, manifest = self._resources.conf.prediction, serving.record.manifest
        since = max(datetime.fromtimestamp(serving.record.promoted_at or 0.0, UTC), now - OLDEST)
        chosen = Selection(since=since - 2 * OLDEST, until=now, min_coverage=conf.min_coverage, marks=True)
        found = self._resources.reader.history.lifetimes(chosen)
        wanted = usable(found, synthetic=Source.SYNTHETIC in manifest["data"]["lifetimes"])
        items = sorted(wanted, key=lambda item: (begun(item), item.instance_uuid))
        newest = [item for item in examples(items, now, conf.min_coverage) if since <= item.ended_at < now]
        return replay(Running.load(manifest, serving.blob), newest, manifest["slice_mib"])
