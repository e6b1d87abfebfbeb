"""Client of the controllers for jobs of the planner (since 1.20); part of ControllerAPI."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

PLANNER_VERSION = "1.20"
"""The version that jobs of the planner came with."""


class ControllerPlannerAPI(ABC):
    """The part of ControllerAPI that has replays of the planner run."""

    @abstractmethod
    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        """Call a method of the leader that came with the version `since`."""

    def create_planner_job(
        self, *, order: Mapping[str, Any], user_id: str = "", project_id: str = "", operation_id: str | None = None
    ) -> dict[str, Any]:
        """Have a replay queued; `order`: as pondstack.planner.job.order has it, `user_id` and `project_id`: who asks.

        Answers {"uuid"}. Raises BadRequest, Conflict (too many wait, or jobs are off).
        """
        answer: dict[str, Any] = self._call_since(
            PLANNER_VERSION,
            "create_planner_job",
            order=dict(order),
            user_id=user_id,
            project_id=project_id,
            operation_id=operation_id or str(uuid4()),
        )
        return answer

    def cancel_planner_job(self, *, uuid: str, operation_id: str | None = None) -> None:
        """Put an end to one; its process is killed. Raises NotFound, Conflict: it has ended."""
        self._call_since(PLANNER_VERSION, "cancel_planner_job", uuid=uuid, operation_id=operation_id or str(uuid4()))

    def remove_planner_job(self, *, uuid: str, operation_id: str | None = None) -> None:
        """Forget one that has ended, and its report. Raises NotFound, Conflict: it has not ended."""
        self._call_since(PLANNER_VERSION, "remove_planner_job", uuid=uuid, operation_id=operation_id or str(uuid4()))
