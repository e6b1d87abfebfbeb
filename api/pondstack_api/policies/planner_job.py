"""Who may see jobs of the planner, and have a cloud's history replayed."""

from pondstack_api.policies import base

LIST = "memory:planner_jobs:list"
SHOW = "memory:planner_jobs:show"
REPORT = "memory:planner_jobs:report"
CREATE = "memory:planner_jobs:create"
CANCEL = "memory:planner_jobs:cancel"
DELETE = "memory:planner_jobs:delete"

RULES = [
    base.rule(LIST, base.RACK_READER, "List jobs of the planner.", "GET", "/planner-jobs"),
    base.rule(SHOW, base.RACK_READER, "Show a job of the planner.", "GET", "/planner-jobs/{job}"),
    base.rule(REPORT, base.RACK_READER, "Fetch the report of a job.", "GET", "/planner-jobs/{job}/report"),
    base.rule(CREATE, base.ADMIN, "Have a history replayed.", "POST", "/planner-jobs"),
    base.rule(CANCEL, base.ADMIN, "Put an end to a job.", "POST", "/planner-jobs/{job}/cancel"),
    base.rule(DELETE, base.ADMIN, "Remove a job and its report.", "DELETE", "/planner-jobs/{job}"),
]
