"""RPC endpoint of the leading controller for jobs of the planner (since 1.20); see ControllerAPI."""

from typing import Any, Protocol

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.rpc.controller_planner_api import PLANNER_VERSION


class Jobs(Protocol):
    """The part of a leader that has jobs."""

    def create(self, operation_id: str, order: dict[str, Any], user_id: str, project_id: str) -> str:
        """Have one queued; returns its UUID."""

    def cancel(self, operation_id: str, uuid: str) -> None:
        """Put an end to one."""

    def remove(self, operation_id: str, uuid: str) -> None:
        """Forget one."""


class PlannerEndpoint:
    """What operators ask for. Errors are of pondstack.domain.errors."""

    target = oslo_messaging.Target(version=PLANNER_VERSION)

    def __init__(self, *, jobs: Jobs, gate: Gate) -> None:
        self.gate = gate
        self._jobs = jobs

    @gated
    def create_planner_job(
        self, _context: Any, *, operation_id: str, order: dict[str, Any], user_id: str, project_id: str
    ) -> dict[str, Any]:
        """Have a replay queued."""
        return {"uuid": self._jobs.create(operation_id, order, user_id, project_id)}

    @gated
    def cancel_planner_job(self, _context: Any, *, operation_id: str, uuid: str) -> None:
        """Put an end to one."""
        self._jobs.cancel(operation_id, uuid)

    @gated
    def remove_planner_job(self, _context: Any, *, operation_id: str, uuid: str) -> None:
        """Forget one that has ended."""
        self._jobs.remove(operation_id, uuid)
