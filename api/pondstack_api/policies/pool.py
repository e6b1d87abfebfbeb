"""Who may see pools."""

from pondstack_api.policies import base

LIST = "memory:pools:list"
SHOW = "memory:pools:show"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the pool devices.", "GET", "/pools"),
    base.rule(SHOW, base.RACK_READER, "Show a pool device.", "GET", "/pools/{pool}"),
]
