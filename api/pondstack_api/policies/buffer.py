"""Who may see buffers."""

from pondstack_api.policies import base

LIST = "memory:buffers:list"
SHOW = "memory:buffers:show"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the buffers of a lender.", "GET", "/lenders/{host}/buffers"),
    base.rule(SHOW, base.RACK_READER, "Show one buffer of a lender.", "GET", "/lenders/{host}/buffers/{index}"),
]
