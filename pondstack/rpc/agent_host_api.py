"""Client of the agents for what a host holds for itself (since 1.4); part of pondstack.rpc.agent_api.AgentAPI."""

from abc import ABC, abstractmethod
from typing import Any

from pondstack.domain.requests import AssignRequest
from pondstack.rpc.wire import Attachment, to_arguments

HOST_SLICES_VERSION = "1.4"
"""The version that hold() and set_tiering() came with; an older agent raises oslo.messaging's UnsupportedVersion."""


class AgentHostAPI(ABC):
    """The part of AgentAPI for what a host holds and does for itself."""

    @abstractmethod
    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        """Call one agent."""

    def hold(self, *, epoch: int, operation_id: str, request: AssignRequest) -> Attachment:
        """Controller's command: get a host slice and bring it online, as `request.host` wants it for `request.purpose`.

        What an earlier command began for this consumer goes on instead. Raises StaleEpoch, and as attach().
        """
        arguments = to_arguments(request)
        host = arguments.pop("host")
        answer = self._call(
            host, "hold", version=HOST_SLICES_VERSION, epoch=epoch, operation_id=operation_id, **arguments
        )
        return Attachment.from_wire(answer)

    def set_tiering(self, host: str, *, epoch: int, on: bool | None) -> None:
        """Controller's command: switch demotion and promotion of the host's kernel; None: as its agent is configured.

        Raises StaleEpoch, and HostUnusable where that kernel cannot demote to pool memory.
        """
        self._call(host, "set_tiering", version=HOST_SLICES_VERSION, epoch=epoch, on=on)
