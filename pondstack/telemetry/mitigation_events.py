"""Notifications of mitigations: that one began, ended or failed."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from pondstack.ledger.records import MitigationRecord
from pondstack.telemetry.versioned import Publisher, payload, time_text

PREFIX = "pondstack.mitigation."
"""Of the event types: start, end, error follow."""
ERROR = "error"


@dataclass(frozen=True, slots=True)
class MitigationEvent:
    """A mitigation as it is when it is told, and what is told: start, end (done or aborted) or error (failed)."""

    record: MitigationRecord
    kind: str

    @property
    def uuid(self) -> str:
        """Return the event's UUID, the same however often it is sent."""
        return str(uuid5(UUID(self.record.uuid), self.kind))

    def payload(self) -> dict[str, Any]:
        """Return the payload."""
        record = self.record
        data = {
            "event_uuid": self.uuid,
            "mitigation_uuid": record.uuid,
            "instance_uuid": record.consumer_uuid,
            "project_id": record.project_id,
            "host": record.host,
            "method": str(record.method),
            "trigger": str(record.trigger),
            "forced": record.forced,
            "state": str(record.state),
            "pool_mib": record.pool_mib,
            "left_mib": record.left_mib,
            "reason": record.reason,
            "created_at": time_text(record.created_at),
            "ended_at": None if record.ended_at is None else time_text(record.ended_at),
        }
        return payload("MitigationPayload", "1.0", data)


class MitigatedGuests(Publisher):
    """Tells of mitigations. With [notifications] enabled off it tells nobody."""

    def __call__(self, event: MitigationEvent) -> None:
        """Come back once the broker has the message, however long that takes."""
        self.publish(PREFIX + event.kind, event.payload(), error=event.kind == ERROR)
