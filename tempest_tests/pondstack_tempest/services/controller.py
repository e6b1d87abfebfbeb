"""Client of controllers."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class ControllersClient(MemoryClient):
    """Controllers, and which one leads."""

    def list_controllers(self, **query: Any) -> Any:
        """List them: `limit`, `marker`."""
        return self.read("/controllers", **query)

    def show_controller(self, name: str) -> Any:
        """Show one."""
        return self.read(f"/controllers/{name}")

    def fail_over(self, **body: Any) -> Any:
        """Have another one lead: `to`."""
        return self.change("POST", "/controllers/failover", 202, **body)
