"""Who may see what was measured of guests."""

from pondstack_api.policies import base

SHOW = "memory:telemetry:show"

RULES = [
    base.rule(SHOW, base.RACK_READER, "Show what was measured of a guest.", "GET", "/telemetry/{consumer}"),
]
