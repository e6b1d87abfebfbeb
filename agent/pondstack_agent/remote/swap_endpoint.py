"""RPC endpoint of swap disks: pondstack.rpc.agent_swap_api on the wire; called by this host's nova-compute.

The controller may end one that Nova forgot; former controllers may not.
"""

from typing import Any

import oslo_messaging

from pondstack.rpc.agent_swap_api import END_SWAP_VERSION
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.remote.endpoint import checked_consumer
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.rpc_errors import answered, need


class SwapEndpoint:
    """The methods that others may call; all of them raise HostUnusable where nothing is borrowed (None)."""

    target = oslo_messaging.Target(version=END_SWAP_VERSION)

    def __init__(self, remote: RemoteMemory | None, epoch: EpochGuard) -> None:
        self._remote, self._epoch = remote, epoch

    @answered
    def attach_swap(
        self, _context: Any, *, consumer_uuid: str, mib: int, project_id: str = "", user_id: str = ""
    ) -> dict[str, Any]:
        """Have an instance's swap disk served, the one that it has or a new one."""
        return need(self._remote).attach_swap(checked_consumer(consumer_uuid), mib, project_id, user_id)

    @answered
    def release_swap(self, _context: Any, *, consumer_uuid: str) -> bool:
        """End an instance's swap disk; False when it had none."""
        return need(self._remote).release_swap(consumer_uuid)

    @answered
    def get_swap(self, _context: Any, *, consumer_uuid: str) -> dict[str, Any] | None:
        """Return what an instance has as its swap disk, None when it has none."""
        return need(self._remote).get_swap(consumer_uuid)

    @answered
    def end_swap(self, _context: Any, *, epoch: int, consumer_uuid: str) -> bool:
        """End the swap disk of an instance that nobody claims any more; False when it had none. Raises InUse."""
        remote = need(self._remote)
        self._epoch.check(epoch)
        return remote.end_swap(consumer_uuid)
