"""Who may see slices."""

from pondstack_api.policies import base

LIST = "memory:slices:list"
SHOW = "memory:slices:show"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the slices of a pool.", "GET", "/pools/{pool}/slices"),
    base.rule(SHOW, base.RACK_READER, "Show one slice of a pool.", "GET", "/pools/{pool}/slices/{index}"),
]
