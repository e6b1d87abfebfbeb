"""Client of the controllers for the QoS monitor (since 1.15); part of pondstack.rpc.controller_api.ControllerAPI."""

from abc import ABC, abstractmethod
from typing import Any
from uuid import uuid4

QOS_VERSION = "1.15"
"""The version that record_performance() came with."""


class ControllerQosAPI(ABC):
    """The part of ControllerAPI that takes in what tenants measure."""

    @abstractmethod
    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        """Call a method of the leader that came with the version `since`."""

    def record_performance(
        self,
        *,
        consumer_uuid: str,
        project_id: str,
        metric: str,
        value: float,
        higher_is_better: bool,
        operation_id: str | None = None,
    ) -> None:
        """Take in a tenant's reading of a metric of an instance's performance.

        Raises BadRequest (no figure), Conflict (too many metrics of this instance, or too often).
        """
        self._call_since(
            QOS_VERSION,
            "record_performance",
            operation_id=operation_id or str(uuid4()),
            consumer_uuid=consumer_uuid,
            project_id=project_id,
            metric=metric,
            value=value,
            higher_is_better=higher_is_better,
        )
