"""Client of splits."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class SplitsClient(MemoryClient):
    """What instances were placed with."""

    def list_splits(self, **query: Any) -> Any:
        """List them: `limit`, `marker`, `project_id`."""
        return self.read("/splits", **query)

    def show_split(self, consumer: str) -> Any:
        """Show the one of an instance."""
        return self.read(f"/splits/{consumer}")
