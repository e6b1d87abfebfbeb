"""Client of the controllers for consolidation (since 1.18); part of pondstack.rpc.controller_api.ControllerAPI."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

PLAN_VERSION = "1.18"
"""The version that plans, the freeze and host_telemetry() came with."""
LIMITS_VERSION = "1.21"
"""The version that limit_consolidation() came with."""


class ControllerPlanAPI(ABC):
    """The part of ControllerAPI that makes, applies and cancels plans."""

    @abstractmethod
    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        """Call a method of the leader that came with the version `since`."""

    def create_plan(
        self,
        *,
        kind: str,
        target: str = "",
        settings: Mapping[str, Any] | None = None,
        operation_id: str | None = None,
    ) -> dict[str, Any]:
        """Have a plan decided, in the background; a drain and a restoration are applied then.

        `settings`: what is to be otherwise than in [consolidation]. Answers {"uuid"}. Raises BadRequest, NotFound,
        Conflict.
        """
        answer: dict[str, Any] = self._call_since(
            PLAN_VERSION,
            "create_plan",
            kind=kind,
            target=target,
            settings=dict(settings or {}),
            operation_id=operation_id or str(uuid4()),
        )
        return answer

    def apply_plan(self, *, uuid: str, operation_id: str | None = None) -> None:
        """Have a proposed plan carried out, in the background. Raises NotFound, Conflict."""
        self._call_since(PLAN_VERSION, "apply_plan", uuid=uuid, operation_id=operation_id or str(uuid4()))

    def cancel_plan(self, *, uuid: str, operation_id: str | None = None) -> None:
        """Put an end to a plan; one that runs is undone, in the background. Raises NotFound, Conflict: it has ended."""
        self._call_since(PLAN_VERSION, "cancel_plan", uuid=uuid, operation_id=operation_id or str(uuid4()))

    def freeze_consolidation(self, *, reason: str | None, operation_id: str | None = None) -> None:
        """Have no plan of consolidation begin or go on; `reason` None: let them."""
        self._call_since(PLAN_VERSION, "freeze_consolidation", reason=reason, operation_id=operation_id or str(uuid4()))

    def limit_consolidation(self, *, changes: Mapping[str, Any], operation_id: str | None = None) -> None:
        """Set at run time what holds in place of options; None: the option holds again. Raises BadRequest.

        `changes`: by the names of pondstack.domain.consolidation_limits.
        """
        self._call_since(
            LIMITS_VERSION,
            "limit_consolidation",
            changes=dict(changes),
            operation_id=operation_id or str(uuid4()),
        )
