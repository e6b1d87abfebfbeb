"""Client of the agents for swap disks in remote memory (Zombieland 4.4): called by nova-compute of the guest's host.

The controller ends those that Nova forgot.
"""

from abc import ABC, abstractmethod
from typing import Any

import oslo_messaging

from pondstack.domain.errors import HostUnusable
from pondstack.rpc.former import does_not_know

SWAP_VERSION = "1.11"
"""The version of the agent's endpoint that these calls came with; an older agent refuses them."""
END_SWAP_VERSION = "1.12"
"""The version that end_swap() came with."""


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

    def end_swap(self, host: str, *, epoch: int, consumer_uuid: str) -> bool:
        """Controller's command: end the swap disk of an instance that nobody claims any more; False when it had none.

        Raises StaleEpoch; InUse: the instance runs, somebody has the disk open, or it was asked for a moment ago; and
        HostUnusable for an agent of a former release.
        """
        try:
            return bool(
                self._call(host, "end_swap", version=END_SWAP_VERSION, epoch=epoch, consumer_uuid=consumer_uuid)
            )
        except oslo_messaging.MessagingException as error:
            if not does_not_know(error):
                raise
            raise HostUnusable(f"the agent of host {host} is of a former release: upgrade it") from error
