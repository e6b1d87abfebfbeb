"""Client of lenders."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class LendersClient(MemoryClient):
    """Hosts that lend memory."""

    def list_lenders(self, **query: Any) -> Any:
        """List them: `limit`, `marker`."""
        return self.read("/lenders", **query)

    def show_lender(self, host: str) -> Any:
        """Show one."""
        return self.read(f"/lenders/{host}")
