"""Client of the wakers: of each host that sleeps, the one process that can be called."""

from typing import Any

from pondstack.rpc import targets
from pondstack.rpc.transport import Bus

WAKER_VERSION = "1.0"


class WakerAPI:
    """Calls to the waker of one host; one that does not answer raises oslo.messaging's MessagingTimeout."""

    def __init__(self, bus: Bus, timeout_seconds: float) -> None:
        self._bus, self._timeout = bus, timeout_seconds

    def wake(self, host: str) -> dict[str, Any]:
        """Have a host wake; answers as told()."""
        return self._call(host, "wake")

    def told(self, host: str) -> dict[str, Any]:
        """Return how far the host's transition is, as AgentPowerAPI.get_power() does."""
        return self._call(host, "told")

    def _call(self, host: str, verb: str) -> dict[str, Any]:
        client = self._bus.client(targets.waker_target(host)).prepare(timeout=self._timeout, version=WAKER_VERSION)
        answer: dict[str, Any] = client.call({}, verb)
        return answer
