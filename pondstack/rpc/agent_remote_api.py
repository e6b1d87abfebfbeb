"""Client of the agents for remote memory of a consumer (Zombieland 4.2, 4.4): called on the consumer's own host."""

from abc import ABC, abstractmethod
from typing import Any

import oslo_messaging

from pondstack.rpc.former import does_not_know

REMOTE_VERSION = "1.2"
"""The version of the agent's endpoint that these calls came with; an older agent refuses them."""
INHERITANCE_VERSION = "1.16"
"""The version since which an instance that moves can keep what it has."""


class AgentRemoteAPI(ABC):
    """The part of AgentAPI for who uses borrowed memory. All raise HostUnusable when the host takes no part in it.

    Answers are {"consumer_uuid", "guaranteed", "state", "mib", "borrowed_mib", "allocations", "extension"}: the last is
    what the data plane does for the instance, None while it serves no process of it. doc/source/admin has all of it.
    Version 1.2 also had alloc_swap, which agents refuse now: swap disks are those of agent_swap_api.
    """

    @abstractmethod
    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        """Call one agent."""

    def alloc_ext(
        self,
        host: str,
        *,
        operation_id: str,
        consumer_uuid: str,
        mib: int,
        project_id: str = "",
        user_id: str = "",
        source: str = "",
    ) -> dict[str, Any]:
        """Borrow memory for an instance, all or nothing (GS_alloc_ext); idempotent by the operation id.

        Raises BufferShortage, BadRequest (no whole buffers), Conflict (it has some, or is being released),
        HostUnusable (no data plane is there), OperationMismatch, and Unavailable: repeat it or release; what nobody
        comes back for is undone. `source`: the host that the instance moves from; what it has there is handed over, as
        far as this host can read it. An agent of a former release borrows all of it anew.
        """
        asked = {"consumer_uuid": consumer_uuid, "mib": mib, "project_id": project_id, "user_id": user_id}
        answer: dict[str, Any]
        try:
            since, more = (INHERITANCE_VERSION, {"source": source}) if source else (REMOTE_VERSION, {})
            answer = self._call(host, "alloc_ext", version=since, operation_id=operation_id, **asked, **more)
        except oslo_messaging.MessagingException as error:
            if not source or not does_not_know(error):
                raise
            answer = self._call(host, "alloc_ext", version=REMOTE_VERSION, operation_id=operation_id, **asked)
        return answer

    def release_remote(self, host: str, *, consumer_uuid: str) -> bool:
        """Give back all that a consumer has borrowed, its pages are gone; False when it had nothing.

        Raises Conflict while the data plane serves the instance's process.
        """
        return bool(self._call(host, "release_remote", version=REMOTE_VERSION, consumer_uuid=consumer_uuid))

    def get_remote(self, host: str, *, consumer_uuid: str) -> dict[str, Any] | None:
        """Return what a consumer has, None when nothing."""
        answer: dict[str, Any] | None = self._call(
            host, "get_remote", version=REMOTE_VERSION, consumer_uuid=consumer_uuid
        )
        return answer
