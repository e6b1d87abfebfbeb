"""Client of the agents for live migrations of guests with remote memory: called by nova-compute."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

MOVE_VERSION = "1.14"
"""The version of the agent's endpoint that these calls came with; an older agent refuses them."""


class AgentMoveAPI(ABC):
    """The part of AgentAPI by which the data planes of two hosts hand a guest over."""

    @abstractmethod
    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        """Call one agent."""

    def expect_guest(self, host: str, *, consumer_uuid: str) -> str:
        """Begin the move of a guest to `host`, which has borrowed for it (alloc_ext); returns a public key.

        Raises NotFound (nothing was borrowed), Conflict (a process of it is served there).
        """
        return str(self._call(host, "expect_guest", version=MOVE_VERSION, consumer_uuid=consumer_uuid))

    def hand_over(self, source: str, *, consumer_uuid: str, public: str) -> dict[str, Any]:
        """Have the source offer a guest to who has this public key; {"host", "port", "public"} for receive_guest.

        The guest runs on. The source refuses it to a host that the guest does not move to. Raises Conflict (the
        reason), NotFound, HostUnusable, Refused, Unavailable.
        """
        answer: dict[str, Any] = self._call(
            source, "hand_over", version=MOVE_VERSION, consumer_uuid=consumer_uuid, public=public
        )
        return answer

    def receive_guest(
        self,
        host: str,
        *,
        consumer_uuid: str,
        memory_mib: int,
        local_mib: int,
        disk_mib: int,
        origin: Mapping[str, Any],
    ) -> None:
        """Have `host` wait for the guest's process, which libvirt starts there; the sizes are those of extend().

        Raises Conflict, BadRequest, NotFound.
        """
        self._call(
            host,
            "receive_guest",
            version=MOVE_VERSION,
            consumer_uuid=consumer_uuid,
            memory_mib=memory_mib,
            local_mib=local_mib,
            disk_mib=disk_mib,
            origin=dict(origin),
        )

    def take_back(self, host: str, *, consumer_uuid: str) -> bool:
        """Have a guest that was offered go on at its source; False when it was not.

        Raises Conflict once the guest is the destination's, and Unavailable: call again.
        """
        return bool(self._call(host, "take_back", version=MOVE_VERSION, consumer_uuid=consumer_uuid))
