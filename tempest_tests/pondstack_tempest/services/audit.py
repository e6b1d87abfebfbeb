"""Client of audits."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class AuditsClient(MemoryClient):
    """Comparisons of ledger, Placement, agents and devices."""

    def create_audit(self, **body: Any) -> Any:
        """Run one: `repair`."""
        return self.change("POST", "/audits", **body)
