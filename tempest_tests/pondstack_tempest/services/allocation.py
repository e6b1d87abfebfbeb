"""Client of allocations."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class AllocationsClient(MemoryClient):
    """Pool memory of instances."""

    def list_allocations(self, **query: Any) -> Any:
        """List them: `limit`, `marker`, `consumer_uuid`, `project_id`, `host`, `pool_uuid`."""
        return self.read("/allocations", **query)

    def show_allocation(self, uuid: str) -> Any:
        """Show one."""
        return self.read(f"/allocations/{uuid}")
