"""The history of an instance: what it is, what it left untouched, and how long such instances live on."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pondstack.domain.errors import NotFound
from pondstack.domain.history import Lifetime, NodeLabel, Selection, percentile, untouched_shares
from pondstack.ledger.reader import HistoryReader
from pondstack.prediction.lifetime import LEAST_AT_RISK, remaining_lifetime
from pondstack_api import render
from pondstack_api.policies import history as policy
from pondstack_api.request import Reply, Request

WINDOW = timedelta(days=30)
"""How far back lives are looked at for a remaining lifetime."""
RECENT = timedelta(days=7)
"""As Pond 4.4 has its percentiles."""
MOST_LIVES = 10_000
"""The newest so many: enough for a curve, and no request reads a whole cloud's past."""


def show_history(request: Request) -> Reply:
    """Show what is known of an instance, ended ones included; of another project's there is none to a user."""
    consumer = request.args["consumer"].lower()
    unknown = NotFound(f"no history of an instance {consumer}: Nova has not told of it, or it ended long ago")
    history = request.services.reader.history
    try:
        one = history.lifetime(consumer)
    except NotFound:
        raise unknown from None
    if not request.context.can(policy.SHOW, {"project_id": one.project_id}):
        raise unknown
    now = datetime.now(UTC)
    least = request.services.conf.prediction.min_coverage
    group = None if request.context.can(policy.ALL_PROJECTS) else one.project_id
    return Reply(
        {
            **_instance(one, now),
            "trains": one.trained_with(least).untouched_mib is not None,
            "labels": [_label(item) for item in history.labels(consumer)],
            **_remaining(history, one, now, group),
            **_recent(history, one, now, least),
        }
    )


def _instance(one: Lifetime, now: datetime) -> dict[str, Any]:
    return {
        "consumer_uuid": one.instance_uuid,
        "project_id": one.project_id,
        "flavor_name": one.flavor_name,
        "memory_mib": one.memory_mib,
        "vcpus": one.vcpus,
        "image_os": one.image_os,
        "zone": one.zone,
        "created_at": render.time(one.created_at.timestamp()),
        "sized_at": render.time((one.sized_at or one.created_at).timestamp()),
        "deleted_at": None if one.deleted_at is None else render.time(one.deleted_at.timestamp()),
        "age_seconds": _seconds(((one.deleted_at or now) - one.created_at).total_seconds()),
        "untouched_mib": one.untouched_mib,
        "coverage": round(one.coverage, 3),
    }


def _label(item: NodeLabel) -> dict[str, Any]:
    return {
        "node": item.node,
        "untouched_mib": item.untouched_mib,
        "observed_seconds": item.observed_seconds,
        "observed_until": render.time(item.observed_until.timestamp()),
        "source": str(item.source),
    }


def _remaining(history: HistoryReader, one: Lifetime, now: datetime, project_id: str | None) -> dict[str, Any]:
    """`project_id`: whose instances may be looked at, None: all projects'."""
    complete_since = history.complete_since()
    if one.deleted_at is not None:
        return _unknown("it was deleted")
    if complete_since is None:
        return _unknown("Nova's instances were not read yet; see [nova] backfill and the controllers' logs")
    since = max(complete_since, now - WINDOW)
    others = history.lifetimes(Selection(since, now, project_id=project_id, limit=MOST_LIVES))
    found = remaining_lifetime(one, others, since, now)
    if found is None:
        return _unknown(f"fewer than {LEAST_AT_RISK} known instances reached its age")
    return {
        "remaining_median_seconds": _seconds(found.median_seconds),
        "remaining_p90_seconds": _seconds(found.p90_seconds),
        "remaining_group": found.group,
        "remaining_at_risk": found.at_risk,
        "remaining_reason": "" if found.median_seconds is not None else "longer than what was seen of any instance",
    }


def _unknown(reason: str) -> dict[str, Any]:
    return {
        "remaining_median_seconds": None,
        "remaining_p90_seconds": None,
        "remaining_group": None,
        "remaining_at_risk": 0,
        "remaining_reason": reason,
    }


def _recent(history: HistoryReader, one: Lifetime, now: datetime, min_coverage: float) -> dict[str, Any]:
    chosen = Selection(now - RECENT, now, one.project_id, one.flavor_name, min_coverage, MOST_LIVES)
    found: Sequence[Lifetime] = [item for item in history.lifetimes(chosen) if item.untouched_mib is not None]
    shares = untouched_shares(found)
    percentiles = {f"recent_untouched_p{percent}": percentile(shares, percent) for percent in (5, 25, 50)}
    return {
        "recent_instances": len(found),
        **{name: None if value is None else round(value, 3) for name, value in percentiles.items()},
        "recent_source": max((str(item.source) for item in found), default=None),
    }


def _seconds(value: float | None) -> float | None:
    return None if value is None else max(0.0, round(value, 0))
