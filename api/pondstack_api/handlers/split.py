"""Splits: how the memory of an instance was divided when it was placed, and why. A project sees its own, not why."""

from typing import Any
from uuid import UUID

from pondstack.domain.errors import BadRequest, NotFound
from pondstack.ledger.records import SplitRecord
from pondstack_api import render
from pondstack_api.ownership import listed_project
from pondstack_api.pagination import page
from pondstack_api.policies import split as policy
from pondstack_api.request import Reply, Request

PROJECT_SINCE = (1, 13)
MODEL_SINCE = (1, 15)


def body(record: SplitRecord, version: tuple[int, int], *, with_reason: bool) -> dict[str, Any]:
    """Return a split as the API shows it; `with_reason`: with what only the operator may know of models and pools."""
    why: dict[str, Any]
    project = {"project_id": record.project_id} if version >= PROJECT_SINCE else {}
    why = {"confidence": record.confidence, "reason": record.reason} if with_reason else {}
    if with_reason and version >= MODEL_SINCE:
        why |= {"model_version": record.model_version or None, "inputs": record.inputs}
    return {
        "consumer_uuid": record.instance_uuid,
        **project,
        "local_mib": record.local_mib,
        "pool_mib": record.pool_mib,
        "source": record.source,
        **why,
        "created_at": render.time(record.created_at),
    }


def list_splits(request: Request) -> Reply:
    """List what instances were placed with, by their UUIDs: all projects' for the operator, else the own project's."""
    project, marker = listed_project(request, policy.ALL_PROJECTS, "splits"), request.query.get("marker")
    reader, with_reason = request.services.reader, request.context.can(policy.REASONS)
    return page(
        request,
        "splits",
        "/splits",
        lambda limit: reader.splits(project_id=project, limit=limit, marker=marker),
        lambda record: record.instance_uuid,
        lambda record: body(record, request.version, with_reason=with_reason),
    )


def show_split(request: Request) -> Reply:
    """Show what an instance was placed with, as nova-scheduler told it; a user sees none of other projects."""
    try:
        consumer = str(UUID(request.args["consumer"]))
    except ValueError:
        raise BadRequest(f"{request.args['consumer']} is no UUID; name the instance by its UUID") from None
    unknown = NotFound(
        f"no split of instance {consumer} is remembered: neither its flavor nor a default policy may give it pool "
        "memory, or it was placed long ago and holds none"
    )
    try:
        record = request.services.reader.split(consumer)
    except NotFound:
        raise unknown from None
    if not request.context.can(policy.SHOW, {"project_id": record.project_id or ""}):
        raise unknown
    return Reply(body(record, request.version, with_reason=request.context.can(policy.REASONS)))
