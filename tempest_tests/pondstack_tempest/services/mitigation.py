"""Client of mitigations."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class MitigationsClient(MemoryClient):
    """Pool memory that is taken away from servers for good."""

    def list_mitigations(self, **query: Any) -> Any:
        """List them, the newest first: `consumer_uuid`, `project_id`, `host`, `open`, `limit`, `marker`."""
        return self.read("/mitigations", **query)

    def mitigate(self, consumer: str, **body: Any) -> Any:
        """Begin one: `forced`, `method`, `operation_id`."""
        return self.change("POST", f"/allocations/{consumer}/mitigate", 202, **body)

    def abort(self, consumer: str, **body: Any) -> Any:
        """Put an end to one: `operation_id`."""
        return self.change("POST", f"/allocations/{consumer}/abort", 202, **body)
