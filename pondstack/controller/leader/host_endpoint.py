"""RPC endpoint of the leading controller for what hosts hold for themselves (since 1.9); see ControllerAPI."""

from collections.abc import Callable
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.controller.pool.host_slices import unanswered
from pondstack.domain.errors import BadRequest
from pondstack.domain.host_slices import HOST_PURPOSES, HoldingKey
from pondstack.domain.purpose import Purpose
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_host_api import AgentHostAPI
from pondstack.rpc.controller_host_api import HOST_SLICES_VERSION


class HostEndpoint:
    """What operators have hosts do for themselves. Errors are of pondstack.domain.errors.

    `changed` wakes who has hosts hold what is wanted, and the writer of Placement.
    """

    target = oslo_messaging.Target(version=HOST_SLICES_VERSION)

    def __init__(self, *, ledger: Ledger, agents: AgentHostAPI, changed: Callable[[], None], gate: Gate) -> None:
        self.gate = gate
        self._ledger, self._agents, self._changed = ledger, agents, changed

    @gated
    def set_host_slices(
        self,
        _context: Any,
        *,
        name: str,
        pool_uuid: str,
        purpose: str,
        count: int,
        generation: int | None,
        operation_id: str,
    ) -> dict[str, Any]:
        """Have a host hold so many slices of a pool for itself; it is done in the background."""
        if purpose not in tuple(HOST_PURPOSES):
            raise BadRequest(f"a host holds {' or '.join(HOST_PURPOSES)} slices, not {purpose!r}")
        key = HoldingKey(name, pool_uuid, Purpose(purpose))
        now = self._ledger.holdings.want(key, count, generation, operation_id)
        self._changed()
        return {"name": name, "generation": now}

    @gated
    def set_tiering(
        self, _context: Any, *, name: str, on: bool | None, generation: int | None, operation_id: str
    ) -> dict[str, Any]:
        """Switch the tiering of a host: at its agent, which may refuse, then in the ledger.

        Its agent follows the ledger with each heartbeat: an order that is not written down does not last.
        """
        self._ledger.hosts.check_tiering(name, on, generation)
        try:
            self._agents.set_tiering(name, epoch=self._ledger.epoch, on=on)
        except oslo_messaging.MessagingException as error:
            raise unanswered(name, error, "be told to tier") from error
        now = self._ledger.hosts.set_tiering(name, on, generation, operation_id)
        return {"name": name, "generation": now}
