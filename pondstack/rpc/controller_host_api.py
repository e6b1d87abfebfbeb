"""Client of the controllers for what operators do with hosts; part of pondstack.rpc.controller_api.ControllerAPI."""

from abc import ABC, abstractmethod
from typing import Any
from uuid import uuid4

HOST_SLICES_VERSION = "1.9"
"""The version that set_host_slices() and set_tiering() came with."""
FENCE_VERSION = "1.16"
"""The version since which fence_host() is told the generation of the host."""


class ControllerHostAPI(ABC):
    """The part of ControllerAPI that changes hosts."""

    @abstractmethod
    def _call(self, method: str, *, timeout_seconds: float | None = None, **arguments: Any) -> Any:
        """Call a method of the leader that every release has."""

    @abstractmethod
    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        """Call a method of the leader that came with the version `since`."""

    def set_host(
        self, *, name: str, enabled: bool, reason: str, generation: int | None, operation_id: str | None = None
    ) -> dict[str, Any]:
        """Enable or disable a host for new pool memory; raises GenerationConflict.

        `operation_id` None: a fresh one for this call.
        """
        answer: dict[str, Any] = self._call(
            "set_host",
            name=name,
            enabled=enabled,
            reason=reason,
            generation=generation,
            operation_id=operation_id or str(uuid4()),
        )
        return answer

    def fence_host(
        self, *, name: str, reason: str, force: bool, generation: int | None, operation_id: str | None = None
    ) -> dict[str, Any]:
        """Take everything from a host that is dead by an operator's word: at the devices, then in the ledger.

        Answers {"name", "fenced", "pool_mib": what its devices have not confirmed yet}. `force`: although its agent
        was heard of lately. `generation`: which one of the host is dead; a request that is late finds another one, and
        fences nobody who is back. None: whichever there is. Raises NotFound, Conflict, GenerationConflict.
        """
        wanted: dict[str, Any] = {
            "name": name,
            "reason": reason,
            "force": force,
            "operation_id": operation_id or str(uuid4()),
        }
        answer: dict[str, Any]
        if generation is None:
            answer = self._call("fence_host", **wanted)
        else:
            answer = self._call_since(FENCE_VERSION, "fence_host", **wanted, generation=generation)
        return answer

    def unfence_host(self, *, name: str, operation_id: str | None = None) -> dict[str, Any]:
        """Let a fenced host take part again; raises NotFound, and Conflict until it reports that it holds nothing."""
        answer: dict[str, Any] = self._call("unfence_host", name=name, operation_id=operation_id or str(uuid4()))
        return answer

    def set_host_slices(
        self,
        *,
        name: str,
        pool_uuid: str,
        purpose: str,
        count: int,
        generation: int | None,
        operation_id: str | None = None,
    ) -> dict[str, Any]:
        """Have a host hold so many slices of a pool for itself, as `tier` or `base`; it is done in the background.

        Answers {"name", "generation"}. Raises NotFound, BadRequest, HostUnusable, GenerationConflict.
        """
        answer: dict[str, Any] = self._call_since(
            HOST_SLICES_VERSION,
            "set_host_slices",
            name=name,
            pool_uuid=pool_uuid,
            purpose=purpose,
            count=count,
            generation=generation,
            operation_id=operation_id or str(uuid4()),
        )
        return answer

    def set_tiering(
        self, *, name: str, on: bool | None, generation: int | None, operation_id: str | None = None
    ) -> dict[str, Any]:
        """Have a host's kernel demote and promote, or not; None: as its agent is configured.

        Answers {"name", "generation"}. Raises NotFound, Conflict, HostUnusable, AgentUnavailable, GenerationConflict.
        """
        answer: dict[str, Any] = self._call_since(
            HOST_SLICES_VERSION,
            "set_tiering",
            name=name,
            on=on,
            generation=generation,
            operation_id=operation_id or str(uuid4()),
        )
        return answer
