"""Client of what is set for projects."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class ProjectsClient(MemoryClient):
    """The default policy of plain flavors, and a cap of pool memory."""

    def list_projects(self, **query: Any) -> Any:
        """List the projects for which something is set: `limit`, `marker`."""
        return self.read("/projects", **query)

    def show_project(self, project_id: str) -> Any:
        """Show what is set for one."""
        return self.read(f"/projects/{project_id}")

    def set_project(self, project_id: str, **changes: Any) -> Any:
        """Set `default_policy`, `max_pool_percent`; None unsets."""
        return self.change("PUT", f"/projects/{project_id}", **changes)
