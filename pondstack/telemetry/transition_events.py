"""Notifications of plans and of hosts' sleeps: that one began, that a host is asleep, that one ended or failed."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from pondstack.domain.host_sleep import HostSleep
from pondstack.domain.plan import ActionKind, ActionState, Plan
from pondstack.telemetry.versioned import Publisher, payload, time_text

ERRORS = ("error", "lost")
"""Kinds of priority ERROR."""


@dataclass(frozen=True, slots=True)
class TransitionEvent:
    """A plan or a sleep as it is when it is told, and what is told."""

    subject: Plan | HostSleep
    kind: str

    @property
    def uuid(self) -> str:
        """Return the event's UUID, the same however often it is sent."""
        return str(uuid5(UUID(self.subject.uuid), self.kind))

    @property
    def type(self) -> str:
        """Return the event type."""
        return f"pondstack.{'plan' if isinstance(self.subject, Plan) else 'host_sleep'}.{self.kind}"

    def payload(self) -> dict[str, Any]:
        """Return the payload."""
        item = self.subject
        name, data = ("PlanPayload", _plan(item)) if isinstance(item, Plan) else ("HostSleepPayload", _sleep(item))
        times = {
            "created_at": time_text(item.created_at),
            "ended_at": None if item.ended_at is None else time_text(item.ended_at),
        }
        return payload(name, "1.0", {"event_uuid": self.uuid, **data, **times})


def _plan(plan: Plan) -> dict[str, Any]:
    moves = [action for action in plan.actions if action.kind is ActionKind.MIGRATE]
    return {
        "plan_uuid": plan.uuid,
        "kind": str(plan.kind),
        "trigger": str(plan.trigger),
        "state": str(plan.state),
        "afterwards": str(plan.afterwards),
        "hosts": sorted(plan.hosts),
        "migrations": len(moves),
        "migrations_done": sum(action.state is ActionState.DONE for action in moves),
        "migrations_failed": sum(action.state is ActionState.FAILED for action in moves),
        "reason": plan.reason,
    }


def _sleep(item: HostSleep) -> dict[str, Any]:
    return {
        "host_sleep_uuid": item.uuid,
        "host": item.host,
        "driver": item.driver,
        "state": str(item.state),
        "lent_mib": item.lent_mib,
        "reason": item.reason,
    }


class Transitions(Publisher):
    """Tells of plans and of hosts' sleeps. With [notifications] enabled off it tells nobody."""

    def __call__(self, event: TransitionEvent) -> None:
        """Come back once the broker has the message, however long that takes."""
        self.publish(event.type, event.payload(), error=event.kind in ERRORS)
