"""Allocations: pool memory of one consumer on one host. A project sees its own ones, never a host, pool or slice."""

from typing import Any

from pondstack.domain.errors import NotFound
from pondstack.ledger.records import AllocationRecord
from pondstack_api import render
from pondstack_api.errors import Forbidden
from pondstack_api.ownership import listed_project
from pondstack_api.pagination import page
from pondstack_api.policies import allocation as policy
from pondstack_api.request import Reply, Request

PURPOSE_SINCE = (1, 11)


def body(allocation: AllocationRecord, version: tuple[int, int], *, with_place: bool) -> dict[str, Any]:
    """Return an allocation as the API shows it; `with_place`: where it is, which only the operator may know."""
    document: dict[str, Any] = {
        "uuid": allocation.uuid,
        "consumer_uuid": allocation.consumer_uuid,
        "project_id": allocation.project_id,
        "user_id": allocation.user_id,
        "state": allocation.state,
        "local_mib": max(allocation.guest_mib - allocation.pool_mib, 0),
        "pool_mib": allocation.pool_mib,
        "guest_mib": allocation.guest_mib,
        "generation": allocation.generation,
        "created_at": render.time(allocation.created_at),
    }
    if version >= PURPOSE_SINCE:
        document["purpose"] = allocation.purpose
    if with_place:
        document |= {
            "host": allocation.host,
            "pool_uuid": allocation.pool_uuid,
            "pool_name": allocation.pool_name,
            "slice_mib": allocation.slice_mib,
            "extents": [dict(extent) for extent in allocation.extents],
        }
    return document


def list_allocations(request: Request) -> Reply:
    """List allocations by uuid: all projects' for the operator, else the own project's."""
    query, reader = request.query, request.services.reader
    with_place = request.context.can(policy.HOSTS)
    if not with_place and ("host" in query or "pool_uuid" in query):
        raise Forbidden("only the operator may filter allocations by host or pool; use consumer_uuid")
    project = listed_project(request, policy.ALL_PROJECTS, "allocations")

    def fetch(limit: int) -> list[AllocationRecord]:
        return reader.allocations(
            project_id=project,
            consumer_uuid=query.get("consumer_uuid"),
            host=query.get("host"),
            pool_uuid=query.get("pool_uuid"),
            limit=limit,
            marker=query.get("marker"),
        )

    return page(
        request,
        "allocations",
        "/allocations",
        fetch,
        lambda allocation: allocation.uuid,
        lambda allocation: body(allocation, request.version, with_place=with_place),
    )


def show_allocation(request: Request) -> Reply:
    """Show an allocation; one of another project does not exist for a project's user."""
    uuid = request.args["uuid"]
    unknown = NotFound(f"no allocation {uuid}; GET /allocations lists those that you may see")
    try:
        allocation = request.services.reader.allocation(uuid)
    except NotFound:
        raise unknown from None
    if not request.context.can(policy.SHOW, {"project_id": allocation.project_id}):
        raise unknown
    return Reply(body(allocation, request.version, with_place=request.context.can(policy.HOSTS)))
