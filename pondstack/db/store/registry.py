"""The registry of prediction models in SQL: ONNX with a manifest, never a pickle; one model of a kind runs.

Each function is a part of the caller's transaction: what is promoted was stored whole, or nothing happened.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from oslo_log import log
from sqlalchemy import and_, delete, insert, or_, select, update
from sqlalchemy.orm import Session, defer

from pondstack.db.connection.clock import now_seconds
from pondstack.db.manifest import CORRUPT
from pondstack.db.models import ModelRow
from pondstack.domain.errors import Conflict, NotFound
from pondstack.ledger.records import ModelRecord

LOG = log.getLogger(__name__)


class ModelState(StrEnum):
    """What a model is for: to be judged, to serve, to come back when the running one is no good.

    Demoted: it broke the budget while it served, and does not come back by itself. Failed: the last nightly training
    that left no model; its manifest has only the reason.
    """

    CANDIDATE = "candidate"
    RUNNING = "running"
    RETIRED = "retired"
    DEMOTED = "demoted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model that is what was stored: its hash was compared."""

    record: ModelRecord
    blob: bytes


def add(session: Session, version: str, manifest: dict[str, Any], blob: bytes) -> None:
    """Store a candidate."""
    session.execute(
        insert(ModelRow).values(
            version=version,
            kind=manifest["kind"],
            state=ModelState.CANDIDATE,
            manifest=manifest,
            blob=blob,
            sha256=sha256(blob),
            created_at=now_seconds(),
        )
    )


def keep(
    session: Session, manifest: dict[str, Any], blob: bytes, made: datetime, beaten: str | None, *, serve: bool
) -> str:
    """Store what was trained against model `beaten` (None: no model ran), and have it serve; returns its version.

    Raises Conflict when another one serves by now: it was not compared with that.
    """
    kind = manifest["kind"]
    found = serving(session, kind)
    if (None if found is None else found.record.version) != beaten:
        raise Conflict("another model was promoted meanwhile; nothing is stored: train again to compare with it")
    version = f"{kind}-{made:%Y%m%dT%H%M%S}-{sha256(blob)[:8]}"
    add(session, version, manifest, blob)
    if serve:
        promote(session, version)
    return version


def note_failure(session: Session, kind: str, made: datetime, reason: str) -> None:
    """Remember when the last training failed, and why, in place of the failure before."""
    session.execute(delete(ModelRow).where(ModelRow.kind == kind, ModelRow.state == ModelState.FAILED))
    version = f"{kind}-{made:%Y%m%dT%H%M%S}-failed"
    add(session, version, {"kind": kind, "trained_at": made.isoformat(), "failed": reason}, b"")
    _set(session, version, ModelState.FAILED)


def last_made(session: Session, kind: str) -> float | None:
    """Return when a training of this kind ended last, well or not, in seconds since the epoch."""
    query = select(ModelRow.created_at).where(ModelRow.kind == kind).order_by(ModelRow.created_at.desc()).limit(1)
    return session.execute(query).scalar()


def promote(session: Session, version: str) -> str | None:
    """Have a model serve; returns the version that it takes the place of. Raises NotFound, Conflict."""
    _lock(session)
    row = _known(session, version)
    if row.state == ModelState.RUNNING:
        raise Conflict(f"model {version} runs already")
    if row.state == ModelState.FAILED:
        raise Conflict(f"{version} is a training that failed: there is no model; train again")
    intact(row)
    former = _retire(session, row.kind)
    mine = ModelRow.version == version
    session.execute(update(ModelRow).where(mine).values(state=ModelState.RUNNING, promoted_at=now_seconds()))
    return former


def rollback(session: Session, kind: str, version: str | None = None) -> tuple[str, str | None]:
    """Retire the running model; the one that ran before it serves again, or none: the static share.

    Returns both versions. Raises NotFound when none runs, and Conflict when it is not `version`: a repetition does not
    go back by another one. The one that is left does not come back by itself: it is a candidate again.
    """
    _lock(session)
    mine = ModelRow.kind == kind, ModelRow.state == ModelState.RUNNING
    running = session.execute(select(ModelRow).where(*mine).with_for_update()).scalar()
    if running is None:
        raise NotFound(f"no model of kind {kind} runs: there is nothing to roll back")
    if version not in (None, running.version):
        raise Conflict(f"model {version} does not run, {running.version} does: nothing was rolled back")
    former = next(
        (row for row in _by_promotion(session, kind) if row.version != running.version and is_intact(row)), None
    )
    _set(session, running.version, ModelState.CANDIDATE)
    if former is not None:
        _set(session, former.version, ModelState.RUNNING)
    return running.version, None if former is None else former.version


def demote(session: Session, version: str, why: dict[str, Any]) -> str | None:
    """Take a model that serves out of service for `why` (for its manifest); returns who serves then, None: static.

    Raises NotFound, and Conflict when it does not serve any more.
    """
    _lock(session)
    row = _known(session, version)
    if row.state not in (ModelState.RUNNING, ModelState.RETIRED):
        raise Conflict(f"model {version} is {row.state}: it does not serve")
    was, kind, manifest = row.state, row.kind, {**row.manifest, "demoted": why}
    mine = ModelRow.version == version
    session.execute(update(ModelRow).where(mine).values(state=ModelState.DEMOTED, manifest=manifest))
    session.expire_all()
    former = next((item for item in _by_promotion(session, kind) if is_intact(item)), None)
    if former is None:
        return None
    if was == ModelState.RUNNING:
        _set(session, former.version, ModelState.RUNNING)
    return former.version


def serving(session: Session, kind: str) -> StoredModel | None:
    """Return the running model, or the last good one before it where it is corrupt; None: the static share serves."""
    for row in _by_promotion(session, kind):
        if is_intact(row):
            if row.state != ModelState.RUNNING:
                LOG.error(
                    "Model %s serves in place of one that is corrupt; run pondstack-manage model rollback", row.version
                )
            return StoredModel(_record(row), row.blob)
        LOG.error("Model %s is corrupt: %s; it does not serve", row.version, flaw(row))
    return None


def note_serving(session: Session, version: str, found: dict[str, Any]) -> None:
    """Keep what the leader found of a model that serves: the chosen points, and the budget."""
    session.execute(update(ModelRow).where(ModelRow.version == version).values(serving=found))


def corrupt(session: Session) -> dict[str, str]:
    """Return what is wrong with models that run or ran, by version; those that are whole are not in."""
    kinds = session.execute(select(ModelRow.kind).distinct().order_by(ModelRow.kind)).scalars().all()
    found = {row.version: flaw(row) for kind in kinds for row in _by_promotion(session, kind)}
    return {version: why for version, why in found.items() if why}


def models(session: Session, *, limit: int | None = None, marker: str | None = None) -> list[ModelRecord]:
    """Return the models, the newest first, those after `marker`; raises NotFound for an unknown one."""
    query = select(ModelRow).options(defer(ModelRow.blob)).order_by(ModelRow.created_at.desc(), ModelRow.version)
    if marker is not None:
        seen = find(session, marker)
        same = and_(ModelRow.created_at == seen.created_at, ModelRow.version > seen.version)
        query = query.where(or_(ModelRow.created_at < seen.created_at, same))
    return [_record(row) for row in session.execute(query.limit(limit)).scalars()]


def find(session: Session, version: str) -> ModelRecord:
    """Return one model; raises NotFound."""
    row = session.execute(select(ModelRow).options(defer(ModelRow.blob)).where(ModelRow.version == version)).scalar()
    if row is None:
        raise NotFound(f"there is no model {version}; `model list` shows them")
    return _record(row)


def load(session: Session, version: str) -> StoredModel:
    """Return a model with its blob; raises NotFound, and Conflict for one that is corrupt."""
    row = session.execute(select(ModelRow).where(ModelRow.version == version)).scalar()
    if row is None:
        raise NotFound(f"there is no model {version}; `model list` shows them")
    intact(row)
    return StoredModel(_record(row), row.blob)


def sha256(blob: bytes) -> str:
    """Return the hash that a blob is known by."""
    return hashlib.sha256(blob).hexdigest()


def flaw(row: ModelRow) -> str:
    """Return why a model cannot serve, "" for one that is what was stored."""
    if sha256(row.blob) != row.sha256:
        return "its blob is not what was stored (SHA-256)"
    return str(row.manifest.get(CORRUPT, ""))


def is_intact(row: ModelRow) -> bool:
    """Return whether a model is what was stored."""
    return not flaw(row)


def intact(row: ModelRow) -> None:
    """Raise Conflict where a model is not what was stored."""
    if not is_intact(row):
        raise Conflict(f"model {row.version} is corrupt: {flaw(row)}; train again")


def _lock(session: Session) -> None:
    """Have changes of what runs one after the other, in every process: of two, each would find no model to retire."""
    session.execute(select(ModelRow.version).order_by(ModelRow.version).with_for_update()).all()


def _known(session: Session, version: str) -> ModelRow:
    row = session.execute(select(ModelRow).where(ModelRow.version == version).with_for_update()).scalar()
    if row is None:
        raise NotFound(f"there is no model {version}; `model list` shows them")
    return row


def _retire(session: Session, kind: str) -> str | None:
    running = (ModelRow.kind == kind, ModelRow.state == ModelState.RUNNING)
    former = session.execute(select(ModelRow.version).where(*running).with_for_update()).scalar()
    session.execute(update(ModelRow).where(*running).values(state=ModelState.RETIRED))
    return former


def _set(session: Session, version: str, state: ModelState) -> None:
    session.execute(update(ModelRow).where(ModelRow.version == version).values(state=state))


def _by_promotion(session: Session, kind: str) -> Sequence[ModelRow]:
    """Return the running model and those before it, the last one first."""
    states = (ModelState.RUNNING, ModelState.RETIRED)
    query = select(ModelRow).where(ModelRow.kind == kind, ModelRow.state.in_(states))
    rows = session.execute(query.order_by(ModelRow.promoted_at.desc())).scalars().all()
    return sorted(rows, key=lambda row: row.state != ModelState.RUNNING)


def _record(row: ModelRow) -> ModelRecord:
    about = row.version, row.kind, row.state, row.manifest, row.sha256, row.created_at, row.promoted_at
    return ModelRecord(*about, row.serving or {})
