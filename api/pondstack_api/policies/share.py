"""Who may see what instances have beside local memory: a project its own ones, without the names of hosts."""

from pondstack_api.policies import base

LIST = "memory:shares:list"
SHOW = "memory:shares:show"
ALL_PROJECTS = "memory:shares:list:all_projects"
HOSTS = "memory:shares:show:hosts"

RULES = [
    base.rule(LIST, base.PROJECT_READER, "List the shares of one's own project's instances.", "GET", "/shares"),
    base.rule(SHOW, base.PROJECT_READER, "Show the share of an instance.", "GET", "/shares/{consumer}"),
    base.rule(ALL_PROJECTS, base.RACK_READER, "See the shares of all projects.", "GET", "/shares"),
    base.rule(HOSTS, base.RACK_READER, "See the hosts of a share; filter by host.", "GET", "/shares"),
]
