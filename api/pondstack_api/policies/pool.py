"""Who may see and remove pools."""

from pondstack_api.policies import base

LIST = "memory:pools:list"
SHOW = "memory:pools:show"
DELETE = "memory:pools:delete"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the pool devices.", "GET", "/pools"),
    base.rule(SHOW, base.RACK_READER, "Show a pool device.", "GET", "/pools/{pool}"),
    base.rule(DELETE, base.ADMIN, "Remove a pool device that is gone.", "DELETE", "/pools/{pool}"),
]
