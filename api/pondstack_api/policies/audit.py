"""Who may audit the ledger."""

from pondstack_api.policies import base

CREATE = "memory:audits:create"
REPAIR = "memory:audits:create:repair"

RULES = [
    base.rule(CREATE, base.ADMIN_OR_SERVICE, "Compare ledger, Placement, agents and devices.", "POST", "/audits"),
    base.rule(REPAIR, base.ADMIN, "Have an audit mend what it can explain.", "POST", "/audits"),
]
