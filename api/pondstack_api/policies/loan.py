"""Who may see loans: a project its own ones, without the names of hosts."""

from pondstack_api.policies import base

LIST = "memory:loans:list"
SHOW = "memory:loans:show"
ALL_PROJECTS = "memory:loans:list:all_projects"
HOSTS = "memory:loans:show:hosts"

RULES = [
    base.rule(LIST, base.PROJECT_READER, "List the loans of one's own project.", "GET", "/loans"),
    base.rule(SHOW, base.PROJECT_READER, "Show a loan of one's own project.", "GET", "/loans/{loan}"),
    base.rule(ALL_PROJECTS, base.RACK_READER, "See the loans of all projects.", "GET", "/loans"),
    base.rule(
        HOSTS,
        base.RACK_READER,
        "See who borrows and who lends what of a loan; filter by both.",
        "GET",
        "/loans",
    ),
]
