"""What `pondstack-manage model table` shows: the table of the models that serve, as the leader makes it."""

from datetime import datetime
from typing import Any

from oslo_config import cfg

from pondstack.db.connection.engine import Database
from pondstack.db.read.history import SqlHistory
from pondstack.db.store import registry
from pondstack.db.store.registry import StoredModel
from pondstack.domain.errors import NotFound
from pondstack.prediction import examples, latency, sensitivity, table
from pondstack.prediction.choice import Limits, choose
from pondstack.prediction.features import OLDEST
from pondstack.prediction.trainer import KIND, Running


def made(conf: cfg.ConfigOpts, database: Database, source: examples.LifetimeSource, now: datetime) -> dict[str, Any]:
    """Return the table. Raises NotFound where no model serves, and BadRequest for one that is broken."""
    untouched = database.read(lambda session: registry.serving(session, KIND))
    sensitive = database.read(lambda session: registry.serving(session, latency.KIND))
    if untouched is None and sensitive is None:
        raise NotFound("no model runs: the static share serves; train one")
    return table.join(
        None if untouched is None else _untouched(conf, source, untouched, now),
        None if sensitive is None else _sensitivity(conf, database, sensitive, now),
        choose(
            None if untouched is None else untouched.record.manifest,
            None if sensitive is None else sensitive.record.manifest,
            Limits.of(conf.model),
        ),
        percent=conf.sizing.static_pool_percent,
        min_local_percent=conf.model.min_local_percent,
    )


def _untouched(
    conf: cfg.ConfigOpts, source: examples.LifetimeSource, serving: StoredModel, now: datetime
) -> table.Part:
    data = examples.read(source, now - OLDEST, now, conf.prediction.min_coverage)
    manifest = serving.record.manifest
    return table.untouched(
        Running.load(manifest, serving.blob).model,
        serving.record.version,
        manifest,
        data.history,
        [item.request for item in data.examples],
        now,
    )


def _sensitivity(conf: cfg.ConfigOpts, database: Database, serving: StoredModel, now: datetime) -> table.Part:
    manifest = serving.record.manifest
    guests = SqlHistory(database, conf.prediction.gap_seconds).counters(now - OLDEST)
    known = sensitivity.usable(guests, manifest)
    found = sensitivity.slowdowns(latency.load(manifest, serving.blob), known)
    return sensitivity.table(serving.record.version, known, found)
