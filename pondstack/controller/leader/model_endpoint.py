"""RPC endpoint of the leading controller for which prediction model serves (since 1.11); see ControllerAPI."""

from collections.abc import Callable
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.db.store import registry
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import Transaction
from pondstack.rpc.controller_api import MODELS_VERSION


class ModelEndpoint:
    """What operators decide of models. Errors are of pondstack.domain.errors. `changed` wakes who computes decisions.

    Under the leader's epoch and journaled, so that a request that is late or repeated does not undo a later one.
    pondstack-manage changes the same rows without a leader; the rows' locks put the two in order.
    """

    target = oslo_messaging.Target(version=MODELS_VERSION)

    def __init__(self, *, ledger: Ledger, changed: Callable[[], None], gate: Gate) -> None:
        self.gate = gate
        self._ledger, self._changed = ledger, changed

    @gated
    def promote_model(self, _context: Any, *, version: str, operation_id: str) -> dict[str, Any]:
        """Have a model serve."""

        def work(tx: Transaction) -> dict[str, Any]:
            return {"running": version, "former": registry.promote(tx, version)}

        return self._once(operation_id, "promote_model", version, work)

    @gated
    def rollback_model(self, _context: Any, *, version: str, operation_id: str) -> dict[str, Any]:
        """Have the model before the one that runs serve again, or none."""

        def work(tx: Transaction) -> dict[str, Any]:
            left, back = registry.rollback(tx, registry.find(tx, version).kind, version)
            return {"running": back, "former": left}

        return self._once(operation_id, "rollback_model", version, work)

    def _once(
        self, operation_id: str, kind: str, version: str, work: Callable[[Transaction], dict[str, Any]]
    ) -> dict[str, Any]:
        effect = self._ledger.once(operation_id, kind, {"version": version}, work)
        self._changed()
        return {"running": effect["running"], "former": effect["former"]}
