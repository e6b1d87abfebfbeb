"""RPC endpoint of remote memory: pondstack.rpc.agent_remote_api on the wire; GS_alloc_ext."""

from typing import Any
from uuid import UUID

import oslo_messaging

from pondstack.domain.errors import BadRequest, HostUnusable
from pondstack.rpc.agent_remote_api import INHERITANCE_VERSION
from pondstack_agent.remote.remote import RemoteMemory
from pondstack_agent.rpc_errors import answered, need


class RemoteEndpoint:
    """The methods that others may call; all of them raise HostUnusable where nothing is borrowed (None)."""

    target = oslo_messaging.Target(version=INHERITANCE_VERSION)

    def __init__(self, remote: RemoteMemory | None) -> None:
        self._remote = remote

    @answered
    def alloc_ext(self, _context: Any, *, consumer_uuid: str, **request: Any) -> dict[str, Any]:
        """Borrow memory that stays until it is released, all or nothing (GS_alloc_ext)."""
        return need(self._remote).alloc(checked_consumer(consumer_uuid), **request)

    @answered
    def alloc_swap(self, _context: Any, **_request: Any) -> dict[str, Any]:
        """Refuse: version 1.2 promises an answer, and what it served, a page store, is gone."""
        raise HostUnusable("alloc_swap is gone, as page stores are; call attach_swap (1.11): a disk of the data plane")

    @answered
    def release_remote(self, _context: Any, *, consumer_uuid: str) -> bool:
        """Give all that a consumer has borrowed back; its pages are gone."""
        return need(self._remote).release(consumer_uuid)

    @answered
    def get_remote(self, _context: Any, *, consumer_uuid: str) -> dict[str, Any] | None:
        """Return what a consumer has, None when nothing; doc/source/admin/lending.md has all of it."""
        return need(self._remote).get(consumer_uuid)


def checked_consumer(consumer_uuid: str) -> str:
    """Raise BadRequest unless it is a UUID in its usual form: it becomes part of the names of files."""
    try:
        good = str(UUID(consumer_uuid)) == consumer_uuid
    except ValueError:
        good = False
    if not good:
        raise BadRequest(f"a consumer of remote memory is named by a UUID, not by {consumer_uuid[:50]!r}")
    return consumer_uuid
