"""Asking the host's data plane for block devices: disks of pages that lie with lenders and in a mirror, over NBD."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pondstack_agent.data_plane.errors import DataPlaneRefused, DataPlaneSilent
from pondstack_agent.data_plane.views import BlockView

_NOT_EXPORTED = "is not exported"


class BlockDevices(Protocol):
    """What the agent asks of the data plane for block devices; raises as DataPlane. A device is named by its UUID."""

    def export(self, block: str, mib: int, mirror: str, socket: str, user: int) -> BlockView:
        """Serve a device, empty at first, on a socket that only root and `user` (a number) may open; idempotent."""

    def unexport(self, block: str) -> None:
        """Hang up on its clients, and forget all that is stored: done when it returns."""

    def lease(self, block: str, lender: str, ticket: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> BlockView:
        """Use keys of a lender; as DataPlane.lease."""

    def leave(self, block: str, lender: str, numbers: Sequence[int]) -> BlockView:
        """Stop using keys, in the background; as DataPlane.leave."""

    def view(self, block: str) -> BlockView | None:
        """Return what it tells of a device, None when that is not exported."""


class BlockClient:
    """Implements BlockDevices over `ask`, which returns the result of a request."""

    def __init__(self, ask: Callable[[Mapping[str, Any]], Any]) -> None:
        self._ask = ask

    def export(self, block: str, mib: int, mirror: str, socket: str, user: int) -> BlockView:
        """Serve a device."""
        return self._block(verb="export", block=block, mib=mib, mirror=mirror, socket=socket, user=user)

    def unexport(self, block: str) -> None:
        """Hang up, and forget; nothing happens when it is not exported."""
        try:
            self._ask({"verb": "unexport", "block": block})
        except DataPlaneRefused as error:
            if _NOT_EXPORTED not in error.message:
                raise

    def lease(self, block: str, lender: str, ticket: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> BlockView:
        """Use keys of a lender."""
        given = [dict(key) for key in keys]
        return self._block(verb="lease", block=block, lender=lender, ticket=dict(ticket), keys=given)

    def leave(self, block: str, lender: str, numbers: Sequence[int]) -> BlockView:
        """Stop using keys."""
        return self._block(verb="leave", block=block, lender=lender, numbers=list(numbers))

    def view(self, block: str) -> BlockView | None:
        """Return what it tells of a device."""
        try:
            return self._block(verb="view", block=block)
        except DataPlaneRefused as error:
            if _NOT_EXPORTED in error.message:
                return None
            raise

    def _block(self, **request: Any) -> BlockView:
        answer = self._ask(request)
        try:
            return BlockView.from_json(answer)
        except ValueError as error:
            raise DataPlaneSilent(f"the data plane gave no answer to go by: {error}") from error
