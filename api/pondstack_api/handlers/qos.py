"""What the QoS monitor decides, what long-lived instances could have, how the control group does."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pondstack.ledger.qos_records import Performance, QosDecision, Reprediction
from pondstack.qos.groups import LEVEL_PERCENT, compare
from pondstack_api import render
from pondstack_api.handlers.instance import known_instance
from pondstack_api.pagination import page
from pondstack_api.policies import qos as policy
from pondstack_api.request import Reply, Request

SEED = 18
"""Of the bootstrap: the same figures have the same interval."""
NEWEST = 20
"""Decisions about one instance that are shown with it."""


def body(item: QosDecision) -> dict[str, Any]:
    """Return a decision as the API shows it."""
    return {
        "id": item.id,
        "consumer_uuid": item.consumer_uuid,
        "allocation_uuid": item.allocation_uuid,
        "project_id": item.project_id,
        "host": item.host,
        "verdict": item.verdict,
        "action": item.action,
        "mode": item.mode,
        "reason": item.reason,
        "expected_percent": item.expected_percent,
        "evidence": dict(item.evidence),
        "decided_at": render.time(item.decided_at),
    }


def list_decisions(request: Request) -> Reply:
    """List the monitor's decisions, the newest first."""
    query, reader = request.query, request.services.reader.qos
    marker = int(query["marker"]) if "marker" in query else None

    def fetch(limit: int) -> Sequence[QosDecision]:
        return reader.decisions(
            consumer_uuid=query.get("consumer_uuid"), action=query.get("action"), limit=limit, marker=marker
        )

    return page(request, "decisions", "/qos", fetch, lambda item: item.id, body)


def show_report(request: Request) -> Reply:
    """Compare the control group with the others by what their projects told of their performance."""
    reader = request.services.reader.qos
    repredicted, reclaimable = reader.reclaimable()
    return Reply(
        {
            "level_percent": LEVEL_PERCENT,
            "comparisons": [asdict(item) for item in compare(reader.performances(), SEED)],
            "repredicted_instances": repredicted,
            "reclaimable_mib": reclaimable,
        }
    )


def show_qos(request: Request) -> Reply:
    """Show whether an instance was corrected, and to the operator why; of another project's there is none to a user."""
    reader = request.services.reader
    one = known_instance(request, policy.SHOW)
    document: dict[str, Any] = {
        "consumer_uuid": one.consumer_uuid,
        "project_id": one.project_id,
        "corrected": one.corrected_at is not None,
        "corrected_at": None if one.corrected_at is None else render.time(one.corrected_at),
        "performance": [performance_body(item) for item in reader.qos.performances(one.consumer_uuid)],
    }
    if request.context.can(policy.DETAILS):
        again = reader.qos.reprediction(one.consumer_uuid)
        found = reader.qos.decisions(consumer_uuid=one.consumer_uuid, limit=NEWEST)
        document |= {
            "split_source": one.split_source,
            "reprediction": None if again is None else _reprediction(again),
            "decisions": [body(item) for item in found],
        }
    return Reply(document)


def performance_body(item: Performance) -> dict[str, Any]:
    """Return a figure of performance as the API shows it."""
    return {
        "metric": item.metric,
        "higher_is_better": item.higher_is_better,
        "readings": item.readings,
        "mean": item.mean,
        "newest": item.newest,
        "updated_at": render.time(item.updated_at),
    }


def _reprediction(item: Reprediction) -> dict[str, Any]:
    return {
        "memory_mib": item.memory_mib,
        "pool_mib": item.pool_mib,
        "wanted_mib": item.wanted_mib,
        "reclaimable_mib": item.reclaimable_mib,
        "untouched_mib": item.untouched_mib,
        "age_seconds": item.age_seconds,
        "source": item.source,
        "predicted_at": render.time(item.predicted_at),
    }
