"""Looks at a guest that is mitigated: Nova, Placement, the ledger, and the agent where it copies."""

from collections.abc import Callable, Sequence
from uuid import UUID, uuid5

import oslo_messaging

from pondstack.clients.nova import Nova, ServerState
from pondstack.clients.placement import Placement
from pondstack.controller.mitigation.claims import covers_all
from pondstack.controller.pool.host_slices import unanswered
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState
from pondstack.domain.mitigation_step import Copy, Seen, Server
from pondstack.domain.states import OWNED
from pondstack.ledger.records import AllocationRecord
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.wire import Mitigation as WireMitigation

PAGES_OF_MIB = 256
COPYING = frozenset({MitigationState.MOVING, MitigationState.UNDOING})
CANNOT = "hold a mitigation's slices"


def attempt(item: Mitigation) -> str:
    """Return the operation id of the present attempt to copy a guest's memory."""
    return str(uuid5(UUID(item.uuid), f"copy {item.work.tries}"))


class Observer:
    """One leader's. `allocations` gives those of a consumer."""

    def __init__(
        self,
        nova: Nova,
        placement: Placement,
        agents: AgentAPI,
        allocations: Callable[[str], Sequence[AllocationRecord]],
    ) -> None:
        self._nova, self._placement, self._agents, self._allocations = nova, placement, agents, allocations

    def look(self, item: Mitigation, *, turn: bool = True) -> Seen:
        """Return what is seen of a guest; raises Unavailable, HostUnusable.

        Placement is asked before Nova, and a claim is changed only if it is still as it was then: whatever Nova moved
        in between, or moves after it was asked, has changed it. The ledger is read last: what Nova attached is there.
        """
        claimed = self._placement.held_by(item.consumer_uuid)
        found = self._nova.server(item.consumer_uuid)
        if found is None:
            return Seen(None)
        server = seen_server(found)
        hosts = {record.host for record in self._allocations(item.consumer_uuid) if record.state in OWNED}
        copies = item.method is MitigationMethod.COPY and item.state in COPYING and server.host == item.host
        return Seen(
            server,
            all_local=covers_all(claimed, item.work.guest_mib),
            holds=item.host in hosts,
            elsewhere=bool(hosts - {item.host}),
            copy=self._copy(item) if copies else None,
            seconds=item.state_seconds,
            turn=turn,
            claimed=claimed,
        )

    def _copy(self, item: Mitigation) -> Copy | None:
        try:
            found = self._agents.get_mitigation(item.host, consumer_uuid=item.consumer_uuid)
        except oslo_messaging.MessagingException as error:
            raise unanswered(item.host, error, CANNOT) from error
        return None if found is None else _copy(found, attempt(item))


def seen_server(found: ServerState) -> Server:
    """Return what Nova says of a server, as decisions take it."""
    return Server(found.host, found.busy, found.running)


def _copy(found: WireMitigation, mine: str) -> Copy:
    left = found.pages_total - found.pages_moved
    return Copy(found.state, -(-left // PAGES_OF_MIB), found.reason, found.operation_id == mine)
