"""Who may see and change hosts."""

from pondstack_api.policies import base

LIST = "memory:hosts:list"
SHOW = "memory:hosts:show"
UPDATE = "memory:hosts:update"
FENCE = "memory:hosts:fence"
UNFENCE = "memory:hosts:unfence"
DELEGATE = "memory:hosts:delegate"
DELETE = "memory:hosts:delete"
RECLAIM = "memory:hosts:reclaim"
SUSPEND = "memory:hosts:suspend"
WAKE = "memory:hosts:wake"
SET_SLICES = "memory:hosts:set_slices"
SET_TIERING = "memory:hosts:set_tiering"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the hosts.", "GET", "/hosts"),
    base.rule(SHOW, base.RACK_READER, "Show a host.", "GET", "/hosts/{name}"),
    base.rule(UPDATE, base.ADMIN, "Enable or disable a host for new pool memory.", "PUT", "/hosts/{name}"),
    base.rule(FENCE, base.ADMIN, "Take the pool memory from a dead host.", "POST", "/hosts/{name}/fence"),
    base.rule(UNFENCE, base.ADMIN, "Let a fenced host take part again.", "POST", "/hosts/{name}/unfence"),
    base.rule(DELETE, base.ADMIN, "Remove a host that is gone.", "DELETE", "/hosts/{name}"),
    base.rule(DELEGATE, base.ADMIN, "Have a host lend memory.", "POST", "/hosts/{name}/delegate"),
    base.rule(RECLAIM, base.ADMIN, "Have a host take back what it lends.", "POST", "/hosts/{name}/reclaim"),
    base.rule(SUSPEND, base.ADMIN, "Put an empty host to sleep.", "POST", "/hosts/{name}/suspend"),
    base.rule(WAKE, base.ADMIN, "Wake a host.", "POST", "/hosts/{name}/wake"),
    base.rule(SET_SLICES, base.ADMIN, "Have a host hold slices for itself.", "PUT", "/hosts/{name}/slices"),
    base.rule(SET_TIERING, base.ADMIN, "Have a host's kernel tier, or not.", "PUT", "/hosts/{name}/tiering"),
]
