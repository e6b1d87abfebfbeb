"""Who may see the history of an instance: a project that of its own ones."""

from pondstack_api.policies import base

SHOW = "memory:history:show"
ALL_PROJECTS = "memory:history:show:all_projects"

RULES = [
    base.rule(SHOW, base.PROJECT_READER, "Show the history of an instance of one's own.", "GET", "/history/{consumer}"),
    base.rule(
        ALL_PROJECTS,
        base.RACK_READER,
        "Have its remaining lifetime told by what all projects' instances did, where its own project's are too few.",
        "GET",
        "/history/{consumer}",
    ),
]
