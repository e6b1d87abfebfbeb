"""Client of the agents for swap disks in remote memory (Zombieland 4.4): called by nova-compute of the guest's host."""

from abc import ABC, abstractmethod
from typing import Any

SWAP_VERSION = "1.11"
"""The version of the agent's endpoint that these calls came with; an older agent refuses them."""


class AgentSwapAPI(ABC):
    """The part of AgentAPI for guests with a swap disk. All raise HostUnusable where no data plane is.

    Answers are {"consumer_uuid", "guaranteed", "state", "mib", "borrowed_mib", "allocations", "socket", "disk"}:
    "socket" serves the disk over NBD, "disk" is what the data plane tells of it. doc/source/admin has all of it.
    """

    @abstractmethod
    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        """Call one agent."""

    def attach_swap(
        self, host: str, *, consumer_uuid: str, mib: int, project_id: str = "", user_id: str = ""
    ) -> dict[str, Any]:
        """Have an instance's swap disk of `mib` served, the one that it has or a new one, which is empty; idempotent.

        Lenders give what there is, and more in the background. Raises BadRequest (no whole buffers), Conflict (it has
        one of another size, or is being released), HostUnusable, and Unavailable: repeat it or release.
        """
        answer: dict[str, Any] = self._call(
            host,
            "attach_swap",
            version=SWAP_VERSION,
            consumer_uuid=consumer_uuid,
            mib=mib,
            project_id=project_id,
            user_id=user_id,
        )
        return answer

    def release_swap(self, host: str, *, consumer_uuid: str) -> bool:
        """End an instance's swap disk, whose pages are gone, and give back all of it; False when it had none.

        Raises Conflict while somebody has the disk open.
        """
        return bool(self._call(host, "release_swap", version=SWAP_VERSION, consumer_uuid=consumer_uuid))

    def get_swap(self, host: str, *, consumer_uuid: str) -> dict[str, Any] | None:
        """Return what an instance has as its swap disk, None when it has none."""
        answer: dict[str, Any] | None = self._call(host, "get_swap", version=SWAP_VERSION, consumer_uuid=consumer_uuid)
        return answer
