"""Actions on one host: `resource_id` is the UUID of its compute node, `resource_name` its name in the API."""

import abc
from typing import Any

from watcher.common import exception

from pondstack.osc.client import Document
from pondstack_watcher.action import UUID, MemoryAction
from pondstack_watcher.plan_action import cancelled, check_done
from pondstack_watcher.service import MemoryServiceError


class HostAction(MemoryAction, metaclass=abc.ABCMeta):
    """An action on one host."""

    @property
    def schema(self) -> dict[str, Any]:
        """Return what it takes."""
        return {
            "type": "object",
            "properties": {
                "resource_id": {"type": "string", "pattern": UUID},
                "resource_name": {"type": "string", "minLength": 1, "maxLength": 255},
            },
            "required": ["resource_id", "resource_name"],
            "additionalProperties": False,
        }

    @property
    def host(self) -> str:
        """Its name."""
        return str(self.input_parameters["resource_name"])

    def _sleep(self) -> Document | None:
        """Return the newest sleep of the host; raises where it is not the one of the compute node any more."""
        host = self.service.get("hosts", self.host)
        if host["provider_uuid"] != self.resource_id:
            raise MemoryServiceError(f"host {self.host} is not compute node {self.resource_id}; audit again")
        sleep: Document | None = host["sleep"]
        return sleep

    def _sleeps(self) -> bool:
        sleep = self._sleep()
        return sleep is not None and sleep["state"] == "asleep"

    def _wake_up(self) -> bool:
        self.take_back("hosts", self.host, "wake")
        return bool(self.service.settled_host(self.host)["state"] in ("awake", "aborted"))

    def _reach(self, state: str) -> None:
        sleep = self.service.settled_host(self.host, state)
        if sleep["state"] != state:
            raise MemoryServiceError(f"host {self.host} is {sleep['state']}: {sleep['reason'] or 'no reason given'}")


class SuspendHost(HostAction):
    """Puts an empty host to sleep, which lends its memory meanwhile."""

    description = "Has an empty host lend its memory and sleep."

    def pre_condition(self) -> None:
        """Skip one that sleeps already."""
        if self._sleeps():
            raise exception.ActionSkipped(f"host {self.host} sleeps already")

    def carry_out(self) -> None:
        """Suspend it, and wait until it sleeps."""
        self.ask("hosts", self.host, "suspend")
        self._reach("asleep")

    def check(self) -> None:
        """Raise unless it sleeps."""
        if not self._sleeps():
            raise MemoryServiceError(f"host {self.host} does not sleep")

    def abort(self) -> bool:
        """Have it turn round; False: it sleeps still."""
        return self._wake_up()

    def revert(self) -> bool:
        """Wake it, where it sleeps or falls asleep."""
        sleep = self._sleep()
        return sleep is None or sleep["ended_at"] is not None or self._wake_up()


class WakeHost(HostAction):
    """Wakes a host, takes back what it lends, and has Nova place servers there again."""

    description = "Wakes a host that lends its memory; Nova may place servers there once its memory is back."

    def pre_condition(self) -> None:
        """Skip one that is awake."""
        sleep = self._sleep()
        if sleep is None or sleep["ended_at"] is not None:
            raise exception.ActionSkipped(f"host {self.host} is awake")

    def carry_out(self) -> None:
        """Wake it, and wait until its memory is back."""
        self.ask("hosts", self.host, "wake")
        sleep = self.service.settled_host(self.host)
        if sleep["state"] not in ("awake", "aborted"):
            raise MemoryServiceError(f"host {self.host} is {sleep['state']}: {sleep['reason'] or 'no reason given'}")

    def check(self) -> None:
        """Raise unless it is awake."""
        if self._sleeps():
            raise MemoryServiceError(f"host {self.host} sleeps")

    def abort(self) -> bool:
        """Leave it to be awake: half awake is no state to stop in."""
        return False

    def revert(self) -> bool:
        """Put it to sleep again; refused where it has servers by now."""
        self.take_back("hosts", self.host, "suspend")
        self._reach("asleep")
        return True


class DrainHost(HostAction):
    """Disables a host in Nova and moves its servers away by live migration."""

    description = "Moves all servers away from a host, and has Nova place none there."
    _plan_uuid: str | None = None

    def pre_condition(self) -> None:
        """Skip one that sleeps."""
        if self._sleeps():
            raise exception.ActionSkipped(f"host {self.host} sleeps already")

    def carry_out(self) -> None:
        """Drain it, and wait for the end; servers that are not running stay, and fail it."""
        self._plan_uuid = self.ask("hosts", self.host, "drain")["uuid"]
        plan = self.service.ended_plan(self._plan_uuid)
        check_done(plan)
        if plan["left_out"]:
            stays = "; ".join(f"{name}: {reason}" for name, reason in sorted(plan["left_out"].items()))
            raise MemoryServiceError(f"host {self.host} is not empty: {stays}")

    def abort(self) -> bool:
        """Put an end to it; False: it was done before."""
        plan = None if self._plan_uuid is None else self.service.get("plans", self._plan_uuid)
        if plan is None or plan["ended_at"] is not None:
            return plan is None or bool(plan["state"] != "done")
        return cancelled(self.service, plan, self.take_back)

    def revert(self) -> bool:
        """Have Nova place servers there again; those that moved stay where they are."""
        if self._plan_uuid is not None and self.abort():
            return True
        plan = self.service.ended_plan(self.take_back("hosts", self.host, "restore")["uuid"])
        return bool(plan["state"] == "done")


class RestoreHost(HostAction):
    """Enables a host in Nova that was drained."""

    description = "Has Nova place servers on a host again that was drained."

    def pre_condition(self) -> None:
        """Raise for one that sleeps: it has to be woken."""
        if self._sleeps():
            raise MemoryServiceError(f"host {self.host} sleeps; wake it")

    def carry_out(self) -> None:
        """Restore it, and wait for the end."""
        check_done(self.service.ended_plan(self.ask("hosts", self.host, "restore")["uuid"]))

    def abort(self) -> bool:
        """Leave it to end: it takes one call to Nova."""
        return False

    def revert(self) -> bool:
        """Leave it enabled."""
        return True
