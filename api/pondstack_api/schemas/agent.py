"""Schemas of agents."""

from pondstack_api.schemas import base

AGENT = base.closed(
    {
        "host": base.described(base.NAME, "name of the agent's host"),
        "up": base.described(base.FLAG, "whether the agent was heard of in time, by the database's clock"),
        "version": base.described(base.TEXT, "version of the agent"),
        "epoch": base.described(base.COUNT, "highest epoch that the agent has seen"),
        "last_heartbeat": base.described(base.TIME, "when it was heard of last (ISO 8601, UTC)"),
        "heartbeat_age_seconds": {"type": "number", "description": "how many seconds ago that was"},
    }
)
AGENTS = base.page("agents", AGENT)
LIST_QUERY = base.query(limit=base.LIMIT, marker=base.described(base.NAME, "the host of the last agent seen"))
