"""RPC endpoint of remote memory: pondstack.rpc.agent_remote_api on the wire, RemoteMemory behind it."""

from typing import Any

import oslo_messaging

from pondstack.rpc.agent_remote_api import REMOTE_VERSION
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.rpc_errors import answered, need


class RemoteEndpoint:
    """The methods that others may call; all of them raise HostUnusable where nothing is borrowed (None)."""

    target = oslo_messaging.Target(version=REMOTE_VERSION)

    def __init__(self, remote: RemoteMemory | None) -> None:
        self._remote = remote

    @answered
    def alloc_ext(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """See RemoteMemory.alloc_ext."""
        return need(self._remote).alloc_ext(**arguments)

    @answered
    def alloc_swap(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """See RemoteMemory.alloc_swap."""
        return need(self._remote).alloc_swap(**arguments)

    @answered
    def release_remote(self, _context: Any, **arguments: Any) -> bool:
        """See RemoteMemory.release."""
        return need(self._remote).release(**arguments)

    @answered
    def get_remote(self, _context: Any, **arguments: Any) -> dict[str, Any] | None:
        """See RemoteMemory.get."""
        return need(self._remote).get(**arguments)
