"""RPC endpoint of the leading controller for consolidation (since 1.18); see ControllerAPI."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.domain.errors import BadRequest
from pondstack.domain.plan import PlanKind
from pondstack.rpc.controller_plan_api import LIMITS_VERSION
from pondstack.rpc.wire import HostReading


class Planning(Protocol):
    """The part of a leader that has plans."""

    def create(self, operation_id: str, kind: PlanKind, target: str, changes: dict[str, Any]) -> str:
        """Have a plan decided; returns its UUID. Raises BadRequest, Conflict."""

    def apply(self, operation_id: str, uuid: str) -> None:
        """Have one carried out."""

    def cancel(self, operation_id: str, uuid: str) -> None:
        """Put an end to one."""

    def freeze(self, operation_id: str, reason: str | None) -> None:
        """Have none begin or go on, or let them."""

    def set_limits(self, operation_id: str, changes: Mapping[str, Any]) -> None:
        """Set at run time what holds in place of options. Raises BadRequest."""


class PlanEndpoint:
    """What operators ask for, and what hosts measure. Errors are of pondstack.domain.errors."""

    target = oslo_messaging.Target(version=LIMITS_VERSION)

    def __init__(
        self, *, planning: Planning, store_readings: Callable[[str, Sequence[HostReading]], None], gate: Gate
    ) -> None:
        self.gate = gate
        self._planning, self._store_readings = planning, store_readings

    @gated
    def host_telemetry(self, _context: Any, *, host: str, readings: Sequence[dict[str, Any]]) -> None:
        """Store what a host measured of itself."""
        self._store_readings(host, [HostReading.from_wire(item) for item in readings])

    @gated
    def create_plan(
        self, _context: Any, *, operation_id: str, kind: str, target: str, settings: dict[str, Any]
    ) -> dict[str, Any]:
        """Have a plan decided in the background."""
        if kind not in tuple(PlanKind):
            raise BadRequest(f"a plan is to {', '.join(PlanKind)}, not {kind!r}")
        return {"uuid": self._planning.create(operation_id, PlanKind(kind), target, settings)}

    @gated
    def apply_plan(self, _context: Any, *, operation_id: str, uuid: str) -> None:
        """Have a proposed plan carried out."""
        self._planning.apply(operation_id, uuid)

    @gated
    def cancel_plan(self, _context: Any, *, operation_id: str, uuid: str) -> None:
        """Put an end to a plan."""
        self._planning.cancel(operation_id, uuid)

    @gated
    def freeze_consolidation(self, _context: Any, *, operation_id: str, reason: str | None) -> None:
        """Freeze consolidation, or thaw it."""
        self._planning.freeze(operation_id, reason)

    @gated
    def limit_consolidation(self, _context: Any, *, operation_id: str, changes: dict[str, Any]) -> None:
        """Set what holds in place of options (since 1.21)."""
        self._planning.set_limits(operation_id, changes)
