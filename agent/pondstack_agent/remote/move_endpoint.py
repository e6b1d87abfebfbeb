"""RPC endpoint of live migrations with remote memory: pondstack.rpc.agent_move_api on the wire."""

from typing import Any

import oslo_messaging

from pondstack.rpc.agent_move_api import MOVE_VERSION
from pondstack.rpc.identity.caller import caller_of
from pondstack_agent.pool.askers import Askers
from pondstack_agent.remote.endpoint import checked_consumer
from pondstack_agent.remote.moves import Moves
from pondstack_agent.rpc_errors import answered, need


class MoveEndpoint:
    """The methods that others may call; all raise HostUnusable where nothing is borrowed (None).

    `askers`: who may have a guest of this host handed over.
    """

    target = oslo_messaging.Target(version=MOVE_VERSION)

    def __init__(self, moves: Moves | None, askers: Askers) -> None:
        self._moves, self._askers = moves, askers

    @answered
    def expect_guest(self, _context: Any, *, consumer_uuid: str) -> str:
        """Begin the move of a guest to this host; returns a public key for its source."""
        return need(self._moves).expect(checked_consumer(consumer_uuid))

    @answered
    def hand_over(self, context: Any, *, consumer_uuid: str, public: str) -> dict[str, Any]:
        """Offer a guest of this host to the host that it moves to; raises Refused to any other."""
        moves = need(self._moves)
        self._askers.check(caller_of(context), checked_consumer(consumer_uuid))
        return moves.hand_over(consumer_uuid, public)

    @answered
    def receive_guest(
        self,
        _context: Any,
        *,
        consumer_uuid: str,
        memory_mib: int,
        local_mib: int,
        disk_mib: int,
        origin: dict[str, Any],
    ) -> None:
        """Wait for a guest's process, and have its pages fetched from its source."""
        need(self._moves).receive(checked_consumer(consumer_uuid), memory_mib, local_mib, disk_mib, origin)

    @answered
    def take_back(self, _context: Any, *, consumer_uuid: str) -> bool:
        """Have a guest that was offered go on here; False when it was not."""
        return need(self._moves).take_back(checked_consumer(consumer_uuid))
