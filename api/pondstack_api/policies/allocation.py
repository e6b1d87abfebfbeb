"""Who may see allocations: a project its own ones, without the names of hosts."""

from pondstack_api.policies import base

LIST = "memory:allocations:list"
SHOW = "memory:allocations:show"
ALL_PROJECTS = "memory:allocations:list:all_projects"
HOSTS = "memory:allocations:show:hosts"

RULES = [
    base.rule(LIST, base.PROJECT_READER, "List the allocations of one's own project.", "GET", "/allocations"),
    base.rule(SHOW, base.PROJECT_READER, "Show an allocation of one's own project.", "GET", "/allocations/{uuid}"),
    base.rule(ALL_PROJECTS, base.RACK_READER, "See the allocations of all projects.", "GET", "/allocations"),
    base.rule(
        HOSTS,
        base.RACK_READER,
        "See where an allocation is: host, pool and slices; filter by host and pool.",
        "GET",
        "/allocations",
    ),
]
