"""Client of the history of instances."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class HistoryClient(MemoryClient):
    """What is known of instances, deleted ones included."""

    def show_history(self, consumer: str) -> Any:
        """Show an instance's."""
        return self.read(f"/history/{consumer}")
