"""RPC endpoint of the leading controller for what tenants measure (since 1.15); see ControllerAPI."""

import math
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.db.store import qos
from pondstack.domain.errors import BadRequest
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import Transaction
from pondstack.rpc.controller_qos_api import QOS_VERSION


class QosEndpoint:
    """Errors are of pondstack.domain.errors. Under the leader's epoch and journaled: a reading counts once."""

    target = oslo_messaging.Target(version=QOS_VERSION)

    def __init__(self, *, ledger: Ledger, gate: Gate) -> None:
        self.gate = gate
        self._ledger = ledger

    @gated
    def record_performance(
        self,
        _context: Any,
        *,
        operation_id: str,
        consumer_uuid: str,
        project_id: str,
        metric: str,
        value: float,
        higher_is_better: bool,
    ) -> None:
        """Take a reading in."""
        if not math.isfinite(value):
            raise BadRequest(f"value={value!r} is no figure; give a finite number")

        def work(tx: Transaction) -> dict[str, Any]:
            qos.perform(tx, consumer_uuid, project_id, metric, value, higher_is_better=higher_is_better)
            return {}

        arguments = {
            "consumer_uuid": consumer_uuid,
            "metric": metric,
            "value": value,
            "higher_is_better": higher_is_better,
        }
        self._ledger.once(operation_id, "record_performance", arguments, work)
