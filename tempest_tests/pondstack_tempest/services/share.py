"""Client of shares."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class SharesClient(MemoryClient):
    """What instances have beside local memory."""

    def list_shares(self, **query: Any) -> Any:
        """List them: `limit`, `marker`, `consumer_uuid`, `project_id`, `host`."""
        return self.read("/shares", **query)

    def show_share(self, consumer: str) -> Any:
        """Show that of an instance."""
        return self.read(f"/shares/{consumer}")
