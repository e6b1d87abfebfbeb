"""Client of telemetry."""

from typing import Any

from pondstack_tempest.services.base import MemoryClient


class TelemetryClient(MemoryClient):
    """What was measured of guests."""

    def show_telemetry(self, consumer: str, **query: Any) -> Any:
        """Show a guest's: `history`, `metric`, `limit`."""
        return self.read(f"/telemetry/{consumer}", **query)
