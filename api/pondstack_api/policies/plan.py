"""Who may see consolidation plans, have them made and carried out, and freeze consolidation."""

from pondstack_api.policies import base

LIST = "memory:plans:list"
SHOW = "memory:plans:show"
CREATE = "memory:plans:create"
APPLY = "memory:plans:apply"
CANCEL = "memory:plans:cancel"
DRAIN = "memory:hosts:drain"
RESTORE = "memory:hosts:restore"
SHOW_CONSOLIDATION = "memory:consolidation:show"
FREEZE = "memory:consolidation:freeze"
LIMIT = "memory:consolidation:limit"

RULES = [
    base.rule(LIST, base.RACK_READER, "List plans.", "GET", "/plans"),
    base.rule(SHOW, base.RACK_READER, "Show a plan.", "GET", "/plans/{plan}"),
    base.rule(CREATE, base.ADMIN, "Have a plan decided.", "POST", "/plans"),
    base.rule(APPLY, base.ADMIN, "Have a plan carried out.", "POST", "/plans/{plan}/apply"),
    base.rule(CANCEL, base.ADMIN, "Put an end to a plan.", "POST", "/plans/{plan}/cancel"),
    base.rule(DRAIN, base.ADMIN, "Move all servers away from a host.", "POST", "/hosts/{name}/drain"),
    base.rule(RESTORE, base.ADMIN, "Enable a host that was drained.", "POST", "/hosts/{name}/restore"),
    base.rule(SHOW_CONSOLIDATION, base.RACK_READER, "See whether consolidation is frozen.", "GET", "/consolidation"),
    base.rule(FREEZE, base.ADMIN, "Freeze consolidation, or thaw it.", "PUT", "/consolidation"),
    base.rule(LIMIT, base.ADMIN, "Set what consolidation leaves awake and free.", "PUT", "/consolidation/limits"),
]
