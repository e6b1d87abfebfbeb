"""Who may see and change hosts."""

from pondstack_api.policies import base

LIST = "memory:hosts:list"
SHOW = "memory:hosts:show"
UPDATE = "memory:hosts:update"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the hosts.", "GET", "/hosts"),
    base.rule(SHOW, base.RACK_READER, "Show a host.", "GET", "/hosts/{name}"),
    base.rule(UPDATE, base.ADMIN, "Enable or disable a host for new pool memory.", "PUT", "/hosts/{name}"),
]
