"""Client of slices."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class SlicesClient(MemoryClient):
    """Slices of a pool device."""

    def list_slices(self, pool: str, **query: Any) -> Any:
        """List them: `limit`, `marker`, `state`, `host`."""
        return self.read(f"/pools/{pool}/slices", **query)

    def show_slice(self, pool: str, index: int | str) -> Any:
        """Show one."""
        return self.read(f"/pools/{pool}/slices/{index}")
