"""Client of the agents for their hosts' sleep (since 1.17); part of pondstack.rpc.agent_api.AgentAPI."""

from abc import ABC, abstractmethod
from typing import Any

POWER_VERSION = "1.17"
"""The version that suspend() and get_power() came with; an older agent raises oslo.messaging's UnsupportedVersion."""

END_VERSION = "1.20"
"""The version that end_suspension() came with."""


class AgentPowerAPI(ABC):
    """The part of AgentAPI for sleep."""

    @abstractmethod
    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        """Call one agent."""

    def suspend(self, host: str, *, epoch: int, operation_id: str, driver: str) -> dict[str, Any]:
        """Controller's command: sleep by a driver, a moment after the answer. Idempotent by operation id.

        Answers as get_power. Raises StaleEpoch, BadRequest, HostUnusable (this host cannot sleep so), Conflict,
        Unavailable (its waker does not start).
        """
        asked = {"epoch": epoch, "operation_id": operation_id, "driver": driver}
        answer: dict[str, Any] = self._call(host, "suspend", version=POWER_VERSION, **asked)
        return answer

    def end_suspension(self, host: str, *, epoch: int, operation_id: str) -> dict[str, Any]:
        """Controller's command: refuse the suspend() of this id from now on, which may still be on its way.

        Answers as get_power: whether the host sleeps by it nevertheless. Idempotent. Raises StaleEpoch.
        """
        asked = {"epoch": epoch, "operation_id": operation_id}
        answer: dict[str, Any] = self._call(host, "end_suspension", version=END_VERSION, **asked)
        return answer

    def get_power(self, host: str) -> dict[str, Any]:
        """Return how far the host's newest transition is.

        {"operation_id", "driver", "state": "" (none), entering, woken or failed, "reason", "drivers": {name: why the
        host cannot sleep by it, "": it can}}; of a host without a waker's process all are empty.
        """
        answer: dict[str, Any] = self._call(host, "get_power", version=POWER_VERSION)
        return answer
