"""Client of prediction models."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class ModelsClient(MemoryClient):
    """Prediction models, and which one serves."""

    def list_models(self, **query: Any) -> Any:
        """List them, the newest first: `limit`, `marker`."""
        return self.read("/models", **query)

    def show_model(self, version: str) -> Any:
        """Show one."""
        return self.read(f"/models/{version}")

    def promote_model(self, version: str, **body: Any) -> Any:
        """Have one serve."""
        return self.change("POST", f"/models/{version}/promote", **body)

    def rollback_model(self, version: str, **body: Any) -> Any:
        """Have the one before it serve again."""
        return self.change("POST", f"/models/{version}/rollback", **body)
