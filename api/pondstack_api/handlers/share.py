"""Shares: what instances have beside local memory, claimed and lent. A project sees its own ones, never a host."""

from typing import Any

from pondstack.domain.errors import NotFound
from pondstack.ledger.loan_records import ShareRecord
from pondstack_api.errors import Forbidden
from pondstack_api.ownership import listed_project
from pondstack_api.pagination import page
from pondstack_api.policies import share as policy
from pondstack_api.request import Reply, Request


def body(share: ShareRecord, *, with_hosts: bool) -> dict[str, Any]:
    """Return a share as the API shows it; `with_hosts`: where it is, which only the operator may know."""
    return {
        "consumer_uuid": share.consumer_uuid,
        "project_id": share.project_id,
        "pool_mib": share.pool_mib,
        "remote_mib": share.remote_mib,
        "remote_lent_mib": share.remote_lent_mib,
        "disk_mib": share.disk_mib,
        "swap_mib": share.swap_mib,
        "swap_lent_mib": share.swap_lent_mib,
        **({"hosts": list(share.hosts)} if with_hosts else {}),
    }


def list_shares(request: Request) -> Reply:
    """List shares by instance: all projects' for the operator, else the own project's."""
    query, reader = request.query, request.services.reader
    with_hosts = request.context.can(policy.HOSTS)
    if not with_hosts and "host" in query:
        raise Forbidden("only the operator may filter shares by host; use consumer_uuid")
    project = listed_project(request, policy.ALL_PROJECTS, "shares")

    def fetch(limit: int) -> list[ShareRecord]:
        return reader.shares.shares(
            project_id=project,
            consumer_uuid=query.get("consumer_uuid"),
            host=query.get("host"),
            limit=limit,
            marker=query.get("marker"),
        )

    return page(
        request,
        "shares",
        "/shares",
        fetch,
        lambda share: share.consumer_uuid,
        lambda share: body(share, with_hosts=with_hosts),
    )


def show_share(request: Request) -> Reply:
    """Show what an instance has beside local memory; one of another project does not exist for a project's user."""
    consumer = request.args["consumer"].lower()
    unknown = NotFound(f"instance {consumer} has no share: all of its memory is local, or it is not yours")
    try:
        share = request.services.reader.shares.share(consumer)
    except NotFound:
        raise unknown from None
    if not request.context.can(policy.SHOW, {"project_id": share.project_id}):
        raise unknown
    return Reply(body(share, with_hosts=request.context.can(policy.HOSTS)))
