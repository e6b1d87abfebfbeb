"""Client of the leader."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class LeaderClient(MemoryClient):
    """The lease of the controller that writes the ledger."""

    def show_leader(self) -> Any:
        """Show it."""
        return self.read("/leader")
