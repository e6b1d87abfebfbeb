"""What operators set for projects: the default policy of plain flavors, and a cap of pool memory."""

from typing import Any

from pondstack.ledger.records import ProjectRecord
from pondstack_api import render
from pondstack_api.pagination import page
from pondstack_api.request import Reply, Request


def body(record: ProjectRecord) -> dict[str, Any]:
    """Return a project as the API shows it."""
    return {
        "project_id": record.project_id,
        "default_policy": record.settings.default_policy,
        "max_pool_percent": record.settings.max_pool_percent,
        "updated_at": None if record.updated_at is None else render.time(record.updated_at),
    }


def list_projects(request: Request) -> Reply:
    """List the projects for which something is set, by id."""
    marker, reader = request.query.get("marker"), request.services.reader.projects
    return page(
        request,
        "projects",
        "/projects",
        lambda limit: reader.projects(limit=limit, marker=marker),
        lambda record: record.project_id,
        body,
    )


def show_project(request: Request) -> Reply:
    """Show what is set for a project, by its id in Keystone; null for what is not. Keystone is not asked."""
    return Reply(body(request.services.reader.projects.project(request.args["project_id"])))


def set_project(request: Request) -> Reply:
    """Set what the body names and leave the rest; null unsets. It binds what is decided from then on."""
    project_id = request.args["project_id"]
    request.services.controller.set_project(project_id=project_id, changes=dict(request.body))
    return show_project(request)
