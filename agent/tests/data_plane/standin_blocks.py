"""Stands in for the block devices of pondstack-data-plane: the same interface and the same contract; no bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pondstack_agent.data_plane.errors import DataPlaneRefused
from pondstack_agent.data_plane.views import BlockState, BlockView, LeaseState, LeaseView


@dataclass
class StandinBlocks:
    """`look` is called before each request, as by who is away. Records outlive `kill`, leases do not."""

    look: Callable[[str], None]
    served: dict[str, BlockView] = field(default_factory=dict)
    asked: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Mirror and user, by device."""
    leaves: bool = True
    """Whether pages leave lenders by the next look."""

    def kill(self) -> None:
        """As kill -9 and a start: its links are gone."""
        self.served = {name: replace(found, leases=(), connected=0) for name, found in self.served.items()}

    def lose(self, block: str) -> None:
        """Have the pages of a device be lost, as with its host."""
        self.served[block] = replace(self._known(block), state=BlockState.FAILED, problem="its keeper has ended")

    def open(self, block: str, clients: int) -> None:
        """Have so many clients connected."""
        self.served[block] = replace(self._known(block), connected=clients)

    # As the data plane

    def export(self, block: str, mib: int, mirror: str, socket: str, user: int) -> BlockView:
        self._look("export")
        known = self.served.get(block)
        if known is not None and ((known.mib, known.socket) != (mib, socket) or known.state is BlockState.FAILED):
            raise DataPlaneRefused(f"block {block} is exported already, or not served")
        if known is None:
            self.asked[block] = (mirror, user)
            self.served[block] = BlockView(block, mib, socket, BlockState.SERVING)
        return self.served[block]

    def unexport(self, block: str) -> None:
        self._look("unexport")
        self.served.pop(block, None)
        self.asked.pop(block, None)

    def lease(self, block: str, lender: str, ticket: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> BlockView:
        self._look("lease")
        del ticket
        for key in keys:
            found = self._known(block)
            if not any((lease.lender, lease.number) == (lender, key["number"]) for lease in found.leases):
                lease = LeaseView(lender, key["number"], LeaseState.ACTIVE)
                self.served[block] = replace(found, leases=(*found.leases, lease))
        return self._known(block)

    def leave(self, block: str, lender: str, numbers: Sequence[int]) -> BlockView:
        self._look("leave")
        found = self._known(block)
        leases = tuple(
            replace(lease, state=LeaseState.LEAVING) if lease.lender == lender and lease.number in numbers else lease
            for lease in found.leases
        )
        self.served[block] = replace(found, leases=leases)
        return self.served[block]

    def view(self, block: str) -> BlockView | None:
        self._look("view")
        return self.served.get(block)

    def _look(self, verb: str) -> None:
        self.look(verb)
        for block, found in self.served.items():
            if self.leaves:
                leases = tuple(lease for lease in found.leases if lease.state is not LeaseState.LEAVING)
                self.served[block] = replace(found, leases=leases)

    def _known(self, block: str) -> BlockView:
        if block not in self.served:
            raise DataPlaneRefused(f"block {block} is not exported")
        return self.served[block]
