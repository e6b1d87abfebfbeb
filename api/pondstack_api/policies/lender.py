"""Who may see the hosts that lend memory."""

from pondstack_api.policies import base

LIST = "memory:lenders:list"
SHOW = "memory:lenders:show"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the hosts that lend memory.", "GET", "/lenders"),
    base.rule(SHOW, base.RACK_READER, "Show a host that lends memory.", "GET", "/lenders/{host}"),
]
