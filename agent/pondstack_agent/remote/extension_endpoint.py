"""RPC endpoint of RAM extension: pondstack.rpc.agent_extension_api on the wire; called by this host's nova-compute."""

from typing import Any

import oslo_messaging

from pondstack.rpc.agent_extension_api import LOST_GUESTS_VERSION
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.rpc_errors import answered, need


class ExtensionEndpoint:
    """The methods that others may call; all but the last two raise HostUnusable where nothing is borrowed (None)."""

    target = oslo_messaging.Target(version=LOST_GUESTS_VERSION)

    def __init__(self, remote: RemoteMemory | None) -> None:
        self._remote = remote

    @answered
    def extend(
        self, _context: Any, *, consumer_uuid: str, memory_mib: int, local_mib: int, disk_mib: int = 0
    ) -> dict[str, Any]:
        """Have a guest's process, which is there, keep `local_mib` of its `memory_mib` only; answers as get_remote."""
        return need(self._remote).extend(consumer_uuid, memory_mib, local_mib, disk_mib)

    @answered
    def unextend(self, _context: Any, *, consumer_uuid: str) -> bool:
        """Bring a guest's pages home; False when they were."""
        return need(self._remote).unextend(consumer_uuid)

    @answered
    def get_mirror_room(self, _context: Any) -> dict[str, int]:
        """Return how much room for mirrors of guests this host has, in MiB, and how much of it is taken."""
        return {"total_mib": 0, "used_mib": 0} if self._remote is None else self._remote.mirror_room()

    @answered
    def get_lost_guests(self, _context: Any) -> list[str]:
        """Return the guests that cannot go on: their pages are lost with the hosts where they came from."""
        return [] if self._remote is None else self._remote.lost_guests()
