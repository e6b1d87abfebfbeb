"""Who may have servers' pool memory taken away for good, and who may see that it was."""

from pondstack_api.policies import base

LIST = "memory:mitigations:list"
BEGIN = "memory:allocations:mitigate"
ABORT = "memory:allocations:abort"
ALL_PROJECTS = "memory:mitigations:list:all_projects"
DETAILS = "memory:mitigations:show:details"

RULES = [
    base.rule(LIST, base.PROJECT_READER, "List the mitigations of one's own project.", "GET", "/mitigations"),
    base.rule(ALL_PROJECTS, base.RACK_READER, "See the mitigations of all projects.", "GET", "/mitigations"),
    base.rule(
        DETAILS,
        base.RACK_READER,
        "See of a mitigation its host, method, reason and evidence; filter by host.",
        "GET",
        "/mitigations",
    ),
    base.rule(
        BEGIN, base.ADMIN, "Take a server's pool memory away for good.", "POST", "/allocations/{consumer}/mitigate"
    ),
    base.rule(ABORT, base.ADMIN, "Put an end to a mitigation.", "POST", "/allocations/{consumer}/abort"),
]
