"""Who may see agents."""

from pondstack_api.policies import base

LIST = "memory:agents:list"
SHOW = "memory:agents:show"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the agents.", "GET", "/agents"),
    base.rule(SHOW, base.RACK_READER, "Show the agent of a host.", "GET", "/agents/{host}"),
]
