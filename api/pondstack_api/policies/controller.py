"""Who may see the controllers, and have another one lead."""

from pondstack_api.policies import base

LIST = "memory:controllers:list"
SHOW = "memory:controllers:show"
FAILOVER = "memory:controllers:failover"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the controllers.", "GET", "/controllers"),
    base.rule(SHOW, base.RACK_READER, "Show a controller.", "GET", "/controllers/{name}"),
    base.rule(FAILOVER, base.ADMIN, "Have another controller lead.", "POST", "/controllers/failover"),
]
