"""Who may see, and set, what holds for the servers of a project."""

from pondstack_api.policies import base

LIST = "memory:projects:list"
SHOW = "memory:projects:show"
SET = "memory:projects:set"

RULES = [
    base.rule(LIST, base.RACK_READER, "List what is set for projects.", "GET", "/projects"),
    base.rule(SHOW, base.RACK_READER, "Show what is set for a project.", "GET", "/projects/{project_id}"),
    base.rule(SET, base.ADMIN, "Set something for a project.", "PUT", "/projects/{project_id}"),
]
