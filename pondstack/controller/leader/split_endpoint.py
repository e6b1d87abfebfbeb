"""RPC endpoint of the leading controller for what schedulers are told and tell of splits; see ControllerAPI."""

from collections.abc import Sequence
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.controller.pool.split_service import SplitService
from pondstack.rpc.controller_api import PREDICTOR_VERSION
from pondstack.rpc.wire import UsedSplit


class SplitEndpoint:
    """What the leader is told of splits, and what schedulers decide from. Errors are of pondstack.domain.errors."""

    target = oslo_messaging.Target(version=PREDICTOR_VERSION)

    def __init__(self, *, splits: SplitService, gate: Gate) -> None:
        self.gate = gate
        self._splits = splits

    @gated
    def record_splits(self, _context: Any, *, splits: Sequence[dict[str, Any]]) -> None:
        """Remember the splits that instances were placed with."""
        self._splits.record([UsedSplit.from_wire(item) for item in splits])

    @gated
    def split_view(
        self, _context: Any, *, epoch: int, version: int, now: bool, predictor: str | None = None
    ) -> dict[str, Any]:
        """Return what a scheduler decides splits from (since 1.10); see ControllerAPI.split_view.

        `predictor` (since 1.13): version of the one that it has; None from a scheduler of the former release.
        """
        return self._splits.view(epoch, version, now=now, predictor=predictor).to_wire()
