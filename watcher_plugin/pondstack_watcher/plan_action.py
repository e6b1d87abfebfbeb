"""The action that applies a plan of the memory service, which carries it out; see Consolidation in its guide."""

from typing import Any

from watcher.common import exception

from pondstack.osc.client import Document
from pondstack_watcher.action import UUID, MemoryAction
from pondstack_watcher.service import MemoryService, MemoryServiceError


def cancelled(service: MemoryService, plan: Document, take_back: Any) -> bool:
    """Put an end to a plan that goes on; returns whether it ended so, not done after all."""
    take_back("plans", plan["uuid"], "cancel")
    return bool(service.ended_plan(plan["uuid"])["state"] == "cancelled")


def check_done(plan: Document) -> None:
    """Raise unless a plan was done."""
    if plan["state"] != "done":
        raise MemoryServiceError(f"plan {plan['uuid']} is {plan['state']}: {plan['reason'] or 'no reason given'}")


class ApplyPlan(MemoryAction):
    """`resource_id`: the UUID of the plan. Where it runs already it is followed; where it was done it is skipped."""

    description = "Applies a plan of the memory service: hosts are emptied, lend their memory and sleep, or are woken."

    @property
    def schema(self) -> dict[str, Any]:
        """Return what it takes."""
        return {
            "type": "object",
            "properties": {"resource_id": {"type": "string", "pattern": UUID}},
            "required": ["resource_id"],
            "additionalProperties": False,
        }

    def pre_condition(self) -> None:
        """Skip a plan that was done; raise for one that cannot be carried out any more."""
        plan = self._plan()
        if plan["state"] == "done":
            raise exception.ActionSkipped(f"plan {plan['uuid']} was carried out already")
        if plan["state"] not in ("proposed", "running"):
            check_done(plan)

    def carry_out(self) -> None:
        """Apply it, and wait for its end."""
        if self._plan()["state"] == "proposed":
            self.ask("plans", self.resource_id, "apply")
        check_done(self.service.ended_plan(self.resource_id))

    def check(self) -> None:
        """Raise unless it was done."""
        check_done(self._plan())

    def abort(self) -> bool:
        """Put an end to it; False: it was done before."""
        plan = self._plan()
        if plan["ended_at"] is not None:
            return bool(plan["state"] != "done")
        return cancelled(self.service, plan, self.take_back)

    def revert(self) -> bool:
        """Take back what it did to hosts: servers that moved stay where they are."""
        plan = self._plan()
        if plan["ended_at"] is None and cancelled(self.service, plan, self.take_back):
            return True
        done = [action for action in self._plan()["actions"] if action["state"] == "done"]
        asleep = {action["host"] for action in done if action["kind"] == "suspend"}
        disabled = {action["host"] for action in done if action["kind"] == "disable"} - asleep
        for name in sorted(asleep):
            self.take_back("hosts", name, "wake")
        ended = [self.service.settled_host(name)["state"] == "awake" for name in sorted(asleep)]
        plans = [self.take_back("hosts", name, "restore")["uuid"] for name in sorted(disabled)]
        return all(ended) and all(self.service.ended_plan(uuid)["state"] == "done" for uuid in plans)

    def _plan(self) -> Document:
        return self.service.get("plans", self.resource_id)
