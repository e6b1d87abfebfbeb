"""Client of the QoS monitor."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class QosClient(MemoryClient):
    """The monitor's decisions, the control group, and what projects tell of their servers' performance."""

    def list_decisions(self, **query: Any) -> Any:
        """List decisions, the newest first: `consumer_uuid`, `action`, `limit`, `marker`."""
        return self.read("/qos", **query)

    def show_report(self) -> Any:
        """Compare the control group with the others."""
        return self.read("/qos/report")

    def show_qos(self, consumer: str) -> Any:
        """Show what is known of an instance."""
        return self.read(f"/qos/{consumer}")

    def record_performance(self, consumer: str, **body: Any) -> Any:
        """Tell a figure: `metric`, `value`, `higher_is_better`."""
        return self.change("PUT", f"/performance/{consumer}", **body)
