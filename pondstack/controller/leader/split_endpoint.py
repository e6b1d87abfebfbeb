"""RPC endpoint of the leading controller for what schedulers tell of splits; see ControllerAPI."""

from collections.abc import Sequence
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.controller.pool.split_service import SplitService
from pondstack.rpc.controller_api import SPLITS_VERSION
from pondstack.rpc.wire import UsedSplit


class SplitEndpoint:
    """What the leader is told of splits. Errors are of pondstack.domain.errors."""

    target = oslo_messaging.Target(version=SPLITS_VERSION)

    def __init__(self, *, splits: SplitService, gate: Gate) -> None:
        self.gate = gate
        self._splits = splits

    @gated
    def record_splits(self, _context: Any, *, splits: Sequence[dict[str, Any]]) -> None:
        """Remember the splits that instances were placed with."""
        self._splits.record([UsedSplit.from_wire(item) for item in splits])
