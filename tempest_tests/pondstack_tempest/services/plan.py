"""Client of consolidation plans."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class PlansClient(MemoryClient):
    """Plans, and the freeze of consolidation."""

    def list_plans(self, **query: Any) -> Any:
        """List them, the newest first: `state`, `limit`, `marker`."""
        return self.read("/plans", **query)

    def show_plan(self, uuid: str) -> Any:
        """Show one with its actions."""
        return self.read(f"/plans/{uuid}")

    def create_plan(self, **body: Any) -> Any:
        """Have one decided: settings of the decision, `afterwards`, `operation_id`."""
        return self.change("POST", "/plans", 202, **body)

    def apply_plan(self, uuid: str, **body: Any) -> Any:
        """Have one carried out: `operation_id`."""
        return self.change("POST", f"/plans/{uuid}/apply", 202, **body)

    def cancel_plan(self, uuid: str, **body: Any) -> Any:
        """Put an end to one: `operation_id`."""
        return self.change("POST", f"/plans/{uuid}/cancel", 202, **body)

    def show_consolidation(self) -> Any:
        """Show whether it is frozen."""
        return self.read("/consolidation")

    def freeze_consolidation(self, **body: Any) -> Any:
        """Freeze it, or thaw it: `frozen`, `reason`."""
        return self.change("PUT", "/consolidation", **body)

    def limit_consolidation(self, **body: Any) -> Any:
        """Set what it leaves awake and free: `reserve_percent`, `least_awake`; None: as the option says."""
        return self.change("PUT", "/consolidation/limits", **body)
