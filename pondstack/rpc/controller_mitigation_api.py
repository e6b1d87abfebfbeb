"""Client of the controllers for mitigations (since 1.14); part of pondstack.rpc.controller_api.ControllerAPI."""

from abc import ABC, abstractmethod
from typing import Any
from uuid import uuid4

MITIGATION_VERSION = "1.14"
"""The version that mitigate() and abort_mitigation() came with."""


class ControllerMitigationAPI(ABC):
    """The part of ControllerAPI that takes pool memory away from guests."""

    @abstractmethod
    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        """Call a method of the leader that came with the version `since`."""

    def mitigate(
        self, *, consumer_uuid: str, forced: bool = False, method: str | None = None, operation_id: str | None = None
    ) -> dict[str, Any]:
        """Begin to take a guest's pool memory away for good (Pond 4.2); it goes on in the background.

        `forced`: although it was mitigated before. `method`: copy, migrate, None: copy, and migrate where the host has
        no local room. Answers a pondstack.ledger.records.MitigationRecord as a dict. Raises NotFound (it has no pool
        memory), BadRequest, Conflict (one is under way, there was one before, Nova works on it), HostUnusable,
        Unavailable.
        """
        answer: dict[str, Any] = self._call_since(
            MITIGATION_VERSION,
            "mitigate",
            operation_id=operation_id or str(uuid4()),
            consumer_uuid=consumer_uuid,
            forced=forced,
            by=method,
        )
        return answer

    def abort_mitigation(self, *, consumer_uuid: str, operation_id: str | None = None) -> dict[str, Any]:
        """Have the open mitigation of a guest undone; answers it as mitigate does, while that goes on.

        Raises NotFound (none is open), Conflict (the guest is off the pool already: it goes on to its end).
        """
        answer: dict[str, Any] = self._call_since(
            MITIGATION_VERSION,
            "abort_mitigation",
            operation_id=operation_id or str(uuid4()),
            consumer_uuid=consumer_uuid,
        )
        return answer
