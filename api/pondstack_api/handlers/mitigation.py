"""Mitigations: pool memory that is taken away for good. A project sees that and when, never where or why."""

from typing import Any

from pondstack.ledger.records import MitigationRecord
from pondstack_api import render
from pondstack_api.errors import Forbidden
from pondstack_api.ownership import listed_project
from pondstack_api.pagination import page
from pondstack_api.policies import mitigation as policy
from pondstack_api.request import Reply, Request


def body(record: MitigationRecord, *, with_details: bool) -> dict[str, Any]:
    """Return a mitigation as the API shows it; `with_details`: with what only the operator may know."""
    document: dict[str, Any] = {
        "uuid": record.uuid,
        "consumer_uuid": record.consumer_uuid,
        "project_id": record.project_id,
        "state": str(record.state),
        "pool_mib": record.pool_mib,
        "left_mib": record.left_mib,
        "created_at": render.time(record.created_at),
        "updated_at": render.time(record.updated_at),
        "ended_at": None if record.ended_at is None else render.time(record.ended_at),
    }
    if with_details:
        document |= {
            "host": record.host,
            "method": str(record.method),
            "trigger": str(record.trigger),
            "forced": record.forced,
            "reason": record.reason,
            "evidence": dict(record.evidence),
        }
    return document


def list_mitigations(request: Request) -> Reply:
    """List mitigations, the newest first: all projects' for the operator, else the own project's."""
    query, reader = request.query, request.services.reader
    project = listed_project(request, policy.ALL_PROJECTS, "mitigations")
    with_details = request.context.can(policy.DETAILS)
    if not with_details and "host" in query:
        raise Forbidden("only the operator may filter mitigations by host; use consumer_uuid")
    return page(
        request,
        "mitigations",
        "/mitigations",
        lambda limit: reader.mitigations(
            consumer=query.get("consumer_uuid"),
            host=query.get("host"),
            project_id=project,
            open_only="open" in query,
            limit=limit,
            marker=query.get("marker"),
        ),
        lambda record: record.uuid,
        lambda record: body(record, with_details=with_details),
    )


def mitigate(request: Request) -> Reply:
    """Begin to take an instance's pool memory away for good; it goes on in the background, GET /mitigations tells."""
    wanted = request.body
    told = request.services.controller.mitigate(
        consumer_uuid=request.args["consumer"].lower(),
        forced=bool(wanted.get("forced", False)),
        method=wanted.get("method"),
        operation_id=wanted.get("operation_id"),
    )
    return _shown(request, told)


def abort(request: Request) -> Reply:
    """Put an end to an instance's mitigation; it keeps its pool memory. 409 once its slices are on their way back."""
    told = request.services.controller.abort_mitigation(
        consumer_uuid=request.args["consumer"].lower(), operation_id=request.body.get("operation_id")
    )
    return _shown(request, told)


def _shown(request: Request, told: dict[str, Any]) -> Reply:
    return Reply(
        body(request.services.reader.mitigation(told["uuid"]), with_details=request.context.can(policy.DETAILS))
    )
