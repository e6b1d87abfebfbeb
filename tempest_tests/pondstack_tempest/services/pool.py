"""Client of pools."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class PoolsClient(MemoryClient):
    """Pool devices."""

    def list_pools(self, **query: Any) -> Any:
        """List them: `limit`, `marker`."""
        return self.read("/pools", **query)

    def show_pool(self, pool: str) -> Any:
        """Show one, by UUID or name."""
        return self.read(f"/pools/{pool}")

    def delete_pool(self, pool: str) -> None:
        """Remove one, by UUID or name."""
        self.remove(f"/pools/{pool}")
