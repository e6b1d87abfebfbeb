"""Hosts: who reaches which pool, and who may get new pool memory."""

from typing import Any

from pondstack.db.views import HostRecord
from pondstack.domain.errors import BadRequest
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request


def body(host: HostRecord) -> dict[str, Any]:
    """Return a host as the API shows it. `pool_mib` is what the host holds now."""
    return {
        "name": host.name,
        "enabled": host.enabled,
        "disabled_reason": host.disabled_reason,
        "up": host.up,
        "provider_uuid": host.provider_uuid,
        "pools": list(host.pools),
        "pool_mib": host.pool_mib,
        "generation": host.generation,
        "created_at": render.time(host.created_at),
    }


def list_hosts(request: Request) -> Reply:
    """List the hosts by name."""
    marker = request.query.get("marker")
    reader = request.services.reader
    return page(
        request, "hosts", "/hosts", lambda limit: reader.hosts(limit=limit, marker=marker), lambda host: host.name, body
    )


def show_host(request: Request) -> Reply:
    """Show a host."""
    return Reply(body(request.services.reader.host(request.args["name"])))


def update_host(request: Request) -> Reply:
    """Enable or disable a host for new pool memory; what it has stays with it."""
    name, wanted = request.args["name"], request.body
    reason = wanted.get("disabled_reason", "")
    if wanted["enabled"] and reason:
        raise BadRequest("disabled_reason goes with enabled: false only; leave it out to enable the host")
    request.services.reader.host(name)
    request.services.controller.set_host(
        name=name, enabled=wanted["enabled"], reason=reason, generation=wanted["generation"]
    )
    return Reply(body(request.services.reader.host(name)))
