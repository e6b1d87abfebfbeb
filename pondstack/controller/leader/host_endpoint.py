"""RPC endpoint of the leading controller for what hosts hold for themselves (since 1.9); see ControllerAPI."""

from collections.abc import Callable
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.domain.errors import BadRequest
from pondstack.domain.host_slices import HOST_PURPOSES, HoldingKey
from pondstack.domain.purpose import Purpose
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.controller_api import HOST_SLICES_VERSION


class HostEndpoint:
    """What operators have hosts do for themselves. Errors are of pondstack.domain.errors.

    `changed` wakes who has hosts hold what is wanted, and the writer of Placement.
    """

    target = oslo_messaging.Target(version=HOST_SLICES_VERSION)

    def __init__(self, *, ledger: Ledger, changed: Callable[[], None], gate: Gate) -> None:
        self.gate = gate
        self._ledger, self._changed = ledger, changed

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
