"""Who may see which controller leads."""

from pondstack_api.policies import base

SHOW = "memory:leader:show"

RULES = [base.rule(SHOW, base.RACK_READER, "Show which controller writes the ledger.", "GET", "/leader")]
