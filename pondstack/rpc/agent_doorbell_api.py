"""Client of the agents for the doorbells of hosts that sleep (since 1.18); part of pondstack.rpc.agent_api.AgentAPI."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

DOORBELL_VERSION = "1.18"
"""The version that these came with; an older agent raises oslo.messaging's UnsupportedVersion."""


class AgentDoorbellAPI(ABC):
    """The part of AgentAPI for doorbells. `operation_id`: that of the sleep's suspend()."""

    @abstractmethod
    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        """Call one agent."""

    def arm_doorbell(
        self, host: str, *, epoch: int, operation_id: str, ringers: Sequence[str]
    ) -> dict[str, Mapping[str, Any]]:
        """Controller's command to a host that is to sleep: have others ring. Returns what each rings with, by host.

        Idempotent by operation id. Raises StaleEpoch, HostUnusable (it has no doorbell), Unavailable.
        """
        asked = {"epoch": epoch, "operation_id": operation_id, "ringers": list(ringers)}
        answer: dict[str, Any] = self._call(host, "arm_doorbell", version=DOORBELL_VERSION, **asked)
        return dict(answer["rings"])

    def connect_doorbell(
        self, host: str, *, epoch: int, operation_id: str, sleeper: str, ring: Mapping[str, Any]
    ) -> None:
        """Controller's command to a host that stays awake: connect to a sleeper's doorbell. Idempotent.

        Raises StaleEpoch, BadRequest, HostUnusable, Unavailable.
        """
        asked = {"epoch": epoch, "operation_id": operation_id, "sleeper": sleeper, "ring": dict(ring)}
        self._call(host, "connect_doorbell", version=DOORBELL_VERSION, **asked)

    def ring_doorbell(self, host: str, *, epoch: int, operation_id: str, sleeper: str) -> None:
        """Controller's command to a host that is connected: ring. That the sleeper wakes is seen elsewhere.

        Raises StaleEpoch, NotFound (it is not connected for this sleep), Unavailable.
        """
        asked = {"epoch": epoch, "operation_id": operation_id, "sleeper": sleeper}
        self._call(host, "ring_doorbell", version=DOORBELL_VERSION, **asked)
