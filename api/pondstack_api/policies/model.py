"""Who may see the prediction models, and say which one serves. Nothing of them is a project's."""

from pondstack_api.policies import base

LIST = "memory:models:list"
SHOW = "memory:models:show"
PROMOTE = "memory:models:promote"
ROLLBACK = "memory:models:rollback"

RULES = [
    base.rule(LIST, base.RACK_READER, "List the prediction models.", "GET", "/models"),
    base.rule(SHOW, base.RACK_READER, "Show a prediction model.", "GET", "/models/{version}"),
    base.rule(PROMOTE, base.ADMIN, "Have a prediction model serve.", "POST", "/models/{version}/promote"),
    base.rule(ROLLBACK, base.ADMIN, "Have the model before serve again.", "POST", "/models/{version}/rollback"),
]
