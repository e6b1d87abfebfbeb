"""Client of agents."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class AgentsClient(MemoryClient):
    """Agents of the hosts."""

    def list_agents(self, **query: Any) -> Any:
        """List them: `limit`, `marker`."""
        return self.read("/agents", **query)

    def show_agent(self, host: str) -> Any:
        """Show the one of a host."""
        return self.read(f"/agents/{host}")
