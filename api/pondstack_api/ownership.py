"""Whose things a list shows: those of the project that asks, or of any to who may read them all."""

from pondstack_api.errors import Forbidden
from pondstack_api.request import Request


def listed_project(request: Request, all_projects: str, what: str) -> str | None:
    """Return the project whose `what` are asked for, None for all; raises Forbidden for another's.

    `all_projects` is the policy of who reads those of all projects.
    """
    context, project = request.context, request.query.get("project_id")
    if context.can(all_projects):
        return project
    if project not in (None, context.project_id):
        raise Forbidden(f"the {what} of another project are the operator's to see; leave project_id out")
    if context.project_id is None:  # which the reader takes for all of them
        raise Forbidden(f"policy {all_projects} does not allow this without a project; get a project's token")
    return context.project_id
