"""Candidates for serving: trained in a child process, then stored and promoted in one transaction.

Both by the operator's word (pondstack-manage model train) and by the leader each night.
"""

import subprocess
from collections.abc import Callable, Iterable
from datetime import datetime

from oslo_config import cfg
from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.store import registry
from pondstack.db.store.registry import StoredModel
from pondstack.domain.history import Lifetime
from pondstack.prediction import latency_trainer, sandbox
from pondstack.prediction.samples import Sample
from pondstack.prediction.trainer import Candidate, Settings


def settings_of(conf: cfg.ConfigOpts, slice_mib: int) -> Settings:
    """Return what the operator allows."""
    group = conf.model
    percent = conf.sizing.static_pool_percent
    return Settings(group.over_prediction_percent, group.target_percent, percent, slice_mib)


def train(
    conf: cfg.ConfigOpts,
    lifetimes: Iterable[Lifetime],
    serving: StoredModel | None,
    now: datetime,
    slice_mib: int,
    started: Callable[[subprocess.Popen[bytes]], object] = lambda _child: None,
) -> Candidate:
    """Return a candidate that was compared with the model that serves; changes nothing. Raises as sandbox.train."""
    return sandbox.train(
        lifetimes,
        settings_of(conf, slice_mib),
        None if serving is None else (serving.record.manifest, serving.blob),
        now,
        sandbox.Limits(conf.model.training_seconds, conf.model.training_memory_mib),
        conf.prediction.min_coverage,
        started,
    )


def latency_settings_of(conf: cfg.ConfigOpts, predictor: str) -> latency_trainer.Settings:
    """Return what the operator allows a model of latency sensitivity."""
    return latency_trainer.Settings(conf.model.false_positive_percent, conf.model.target_percent, predictor)


def train_latency(
    conf: cfg.ConfigOpts, items: Iterable[Sample], serving: StoredModel | None, now: datetime, predictor: str
) -> Candidate:
    """Return a candidate for latency sensitivity; else as train()."""
    return sandbox.train_latency(
        items,
        latency_settings_of(conf, predictor),
        None if serving is None else (serving.record.manifest, serving.blob),
        now,
        sandbox.Limits(conf.model.training_seconds, conf.model.training_memory_mib),
    )


def keep(
    database: Database,
    candidate: Candidate,
    beaten: StoredModel | None,
    made: datetime,
    *,
    serve: bool,
    fence: Callable[[Session], object] = lambda _session: None,
) -> str:
    """Store a candidate, and have it serve; returns its version. Raises Conflict, and what `fence` raises.

    `fence(session)` comes first in the transaction: a former leader's raises NotLeader, and nothing is stored.
    """

    def work(session: Session) -> str:
        fence(session)
        version = None if beaten is None else beaten.record.version
        return registry.keep(session, candidate.manifest, candidate.blob, made, version, serve=serve)

    return database.write(work)
