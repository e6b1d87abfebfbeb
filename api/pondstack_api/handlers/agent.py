"""Agents: the pondstack-agent of each host, alive or not."""

from typing import Any

from pondstack.ledger.records import HostRecord
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request


def body(host: HostRecord) -> dict[str, Any]:
    """Return the agent of a host as the API shows it."""
    return {
        "host": host.name,
        "up": host.up,
        "version": host.agent_version,
        "epoch": host.agent_epoch,
        "last_heartbeat": render.time(host.last_heartbeat),
        "heartbeat_age_seconds": round(host.heartbeat_age_seconds, 1),
    }


def list_agents(request: Request) -> Reply:
    """List the agents by host."""
    marker = request.query.get("marker")
    reader = request.services.reader
    return page(
        request,
        "agents",
        "/agents",
        lambda limit: reader.hosts(limit=limit, marker=marker),
        lambda host: host.name,
        body,
    )


def show_agent(request: Request) -> Reply:
    """Show the agent of a host."""
    return Reply(body(request.services.reader.host(request.args["host"])))
