"""Client of the agents for RAM extension (Zombieland 4.5): called by nova-compute of the guest's own host."""

from abc import ABC, abstractmethod
from typing import Any

EXTENSION_VERSION = "1.8"
"""The version of the agent's endpoint that these calls came with; an older agent refuses them."""
DISK_SHARE_VERSION = "1.13"
"""The version that extend() knows `disk_mib` since."""
LOST_GUESTS_VERSION = "1.15"
"""The version that get_lost_guests() came with."""


class AgentExtensionAPI(ABC):
    """The part of AgentAPI for guests a part of whose memory is elsewhere."""

    @abstractmethod
    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        """Call one agent."""

    def extend(
        self, host: str, *, consumer_uuid: str, memory_mib: int, local_mib: int, disk_mib: int = 0
    ) -> dict[str, Any]:
        """Have a guest's process keep `local_mib` of the `memory_mib` of its local node only; answers as get_remote.

        The process is there, paused or running, and the guest has borrowed the rest by alloc_ext, but for `disk_mib`,
        which is in the mirror alone. Idempotent; another `local_mib` changes the limit. It answers once the process is
        served. Raises NotFound (nothing was borrowed), Conflict (no such process, or it cannot be served: the reason),
        BadRequest, HostUnusable, and Unavailable: call again.
        """
        disk: dict[str, Any] = {"disk_mib": disk_mib} if disk_mib else {}
        answer: dict[str, Any] = self._call(
            host,
            "extend",
            version=DISK_SHARE_VERSION if disk else EXTENSION_VERSION,
            consumer_uuid=consumer_uuid,
            memory_mib=memory_mib,
            local_mib=local_mib,
            **disk,
        )
        return answer

    def unextend(self, host: str, *, consumer_uuid: str) -> bool:
        """Bring all pages of a guest home, for which it needs local memory; False when they were.

        Raises Unavailable: call again, it goes on meanwhile. The end of the process needs no such call.
        """
        return bool(self._call(host, "unextend", version=EXTENSION_VERSION, consumer_uuid=consumer_uuid))

    def get_mirror_room(self, host: str) -> dict[str, int]:
        """Return {"total_mib", "used_mib"} of the room for guests' mirrors; both 0 where no data plane is."""
        answer: dict[str, int] = self._call(host, "get_mirror_room", version=EXTENSION_VERSION)
        return answer

    def get_lost_guests(self, host: str) -> list[str]:
        """Return the guests of a host that cannot go on: pages of theirs are lost with the hosts where they came from.

        Whoever calls this ends them.
        """
        return [str(guest) for guest in self._call(host, "get_lost_guests", version=LOST_GUESTS_VERSION)]
