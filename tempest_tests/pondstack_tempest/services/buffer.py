"""Client of buffers."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class BuffersClient(MemoryClient):
    """Buffers of a lender."""

    def list_buffers(self, host: str, **query: Any) -> Any:
        """List them: `limit`, `marker`, `state`, `host`."""
        return self.read(f"/lenders/{host}/buffers", **query)

    def show_buffer(self, host: str, index: int | str) -> Any:
        """Show one."""
        return self.read(f"/lenders/{host}/buffers/{index}")
