"""What operators set per project, in SQL. Each function is a part of the caller's transaction."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import ProjectSettingsRow
from pondstack.domain.errors import BadRequest, NotFound
from pondstack.domain.project_settings import NOTHING_SET, DefaultPolicy, ProjectSettings
from pondstack.ledger.records import ProjectRecord

FIELDS = frozenset({"default_policy", "max_pool_percent"})


def change(session: Session, project_id: str, changes: Mapping[str, Any]) -> ProjectSettings:
    """Set what `changes` names, None: unset it; returns what is set then. Raises BadRequest."""
    row = session.execute(
        select(ProjectSettingsRow).where(ProjectSettingsRow.project_id == project_id).with_for_update()
    ).scalar()
    settings = _settings({**_values(NOTHING_SET if row is None else _record(row).settings), **_checked(changes)})
    session.execute(delete(ProjectSettingsRow).where(ProjectSettingsRow.project_id == project_id))
    if not settings.empty:
        values = {"project_id": project_id, **_values(settings), "updated_at": now_seconds()}
        session.execute(insert(ProjectSettingsRow).values(values))
    return settings


def find(session: Session, project_id: str) -> ProjectRecord:
    """Return what is set for a project, which may be nothing."""
    row = session.get(ProjectSettingsRow, project_id)
    return ProjectRecord(project_id, NOTHING_SET, None) if row is None else _record(row)


def projects(session: Session, *, limit: int | None = None, marker: str | None = None) -> list[ProjectRecord]:
    """Return the projects that have something set, by id, those after `marker`; raises NotFound for an unknown one."""
    query = select(ProjectSettingsRow).order_by(ProjectSettingsRow.project_id)
    if marker is not None:
        if session.get(ProjectSettingsRow, marker) is None:
            raise NotFound(f"nothing is set for project {marker}")
        query = query.where(ProjectSettingsRow.project_id > marker)
    return [_record(row) for row in session.execute(query.limit(limit)).scalars()]


def all_set(session: Session) -> dict[str, ProjectSettings]:
    """Return what is set, by project."""
    return {record.project_id: record.settings for record in projects(session)}


def _checked(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    unknown = sorted(set(changes) - FIELDS)
    if unknown or not changes:
        wrong = ", ".join(unknown) or "nothing"
        raise BadRequest(f"{wrong} cannot be set for a project; set {' or '.join(sorted(FIELDS))}")
    percent, policy = changes.get("max_pool_percent"), changes.get("default_policy")
    if percent is not None and not (type(percent) is int and 0 <= percent <= 100):
        raise BadRequest(f"max_pool_percent={percent!r} is wrong; it must be an integer from 0 to 100, or null")
    if policy is not None and policy not in list(DefaultPolicy):
        raise BadRequest(f"default_policy={policy!r} is wrong; it must be none, auto or null")
    return changes


def _values(settings: ProjectSettings) -> dict[str, Any]:
    return {"default_policy": settings.default_policy, "max_pool_percent": settings.max_pool_percent}


def _settings(values: Mapping[str, Any]) -> ProjectSettings:
    policy = values["default_policy"]
    return ProjectSettings(None if policy is None else DefaultPolicy(policy), values["max_pool_percent"])


def _record(row: ProjectSettingsRow) -> ProjectRecord:
    values = {name: getattr(row, name) for name in FIELDS}
    return ProjectRecord(row.project_id, _settings(values), row.updated_at)
