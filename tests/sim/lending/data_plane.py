"""The data plane of a host of a history: it holds the links to lenders, outlives the agent, and may crash."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pondstack_agent.borrower.records import Held
from pondstack_rdma.model import Ticket

from .lender import SimLink, SimTransport

if TYPE_CHECKING:
    from ..host import SimHost


class SimDataPlane:
    """Implements pondstack_agent.borrower.links.Links."""

    def __init__(self, host: "SimHost") -> None:
        self._host = host
        self._links: dict[tuple[str, str], SimLink] = {}

    def connect(self, lender: str, incarnation: str, ticket: Mapping[str, Any]) -> None:
        """Connect; raises TransportGone from a lender that is frozen."""
        if (lender, incarnation) not in self._links:
            self._links[lender, incarnation] = SimTransport(self._host).connect(Ticket.from_dict(ticket), 1.0)

    def alive(self) -> list[tuple[str, str]]:
        """Return the links to lenders that live."""
        lives = {host.life.incarnation for host in self._host.rack.hosts.values() if host.life is not None}
        return sorted(link for link in self._links if link[1] in lives)

    def link(self, held: Held) -> SimLink:
        """Return the link to a lender, which is made where there is none; raises as connect."""
        self.connect(held.lender, held.incarnation, held.ticket)
        return self._links[held.lender, held.incarnation]

    def crash(self) -> None:
        """End, and start again without any link: those to lenders that sleep cannot be made again."""
        if self._links:
            self._host.rack.scheduler.faults["data plane crashed"] += 1
        self._links.clear()
