"""RPC endpoint of the leading controller for hosts and pools that operators remove; see ControllerAPI."""

from collections.abc import Callable
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.controller.pool.remover import Remover
from pondstack.rpc.controller_api import REMOVAL_VERSION


class RemovalEndpoint:
    """What the leader removes. Errors are of pondstack.domain.errors. `publish` wakes the writer of Placement."""

    target = oslo_messaging.Target(version=REMOVAL_VERSION)

    def __init__(self, *, remover: Remover, publish: Callable[[], None], gate: Gate) -> None:
        self.gate = gate
        self._remover, self._publish = remover, publish

    @gated
    def remove_host(self, _context: Any, *, name: str, operation_id: str) -> None:
        """Forget a host of which nothing is left."""
        try:
            self._remover.remove_host(name, operation_id)
        finally:
            self._publish()

    @gated
    def remove_pool(self, _context: Any, *, uuid: str, operation_id: str) -> None:
        """Forget a pool of which nothing is left."""
        try:
            self._remover.remove_pool(uuid, operation_id)
        finally:
            self._publish()
