"""Who may see how instances' memory was split: a project its own ones, without why a model decided so."""

from pondstack_api.policies import base

LIST = "memory:splits:list"
SHOW = "memory:splits:show"
ALL_PROJECTS = "memory:splits:list:all_projects"
REASONS = "memory:splits:show:reasons"

RULES = [
    base.rule(LIST, base.PROJECT_READER, "List the splits of one's own project.", "GET", "/splits"),
    base.rule(SHOW, base.PROJECT_READER, "Show what an instance was placed with.", "GET", "/splits/{consumer}"),
    base.rule(ALL_PROJECTS, base.RACK_READER, "See the splits of all projects.", "GET", "/splits"),
    base.rule(
        REASONS,
        base.RACK_READER,
        "See the reason of a split, which names models and pools, and its confidence.",
        "GET",
        "/splits",
    ),
]
