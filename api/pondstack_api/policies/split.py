"""Who may see how instances' memory was split."""

from pondstack_api.policies import base

SHOW = "memory:splits:show"

RULES = [
    base.rule(SHOW, base.RACK_READER, "Show what an instance was placed with.", "GET", "/splits/{consumer}"),
]
