"""A strategy that has the memory service decide a plan, and proposes to apply it."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from pondstack.osc.client import Document
from pondstack_watcher.service import MemoryService, MemoryServiceError
from pondstack_watcher.strategy import MemoryStrategy

NAME, APPLY = "pondstack_plan", "pondstack_apply_plan"
_COUNT = {"type": "integer", "minimum": 0}
_PERCENT = {"type": "number", "minimum": 0, "maximum": 100}


class PlanStrategy(MemoryStrategy):
    """Idle hosts by a plan of the memory service.

    It is decided from the memory service's own measurements and Placement, with its budgets (see Consolidation), and
    carried out by it: Watcher decides when. Refused where the plan reaches beyond the audit's scope.
    """

    display_name_text = "Idle hosts by a plan of the memory service"

    @classmethod
    def get_name(cls) -> str:
        """Return the name of the entry point."""
        return NAME

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        """Return what may be set; what is not is as [consolidation] of the controllers has it."""
        afterwards = {"type": "string", "enum": ["keep", "lend", "suspend"], "default": "suspend"}
        afterwards["description"] = "what becomes of emptied hosts: awake, disabled; they lend; they lend and sleep"
        return {
            "properties": {
                "afterwards": afterwards,
                "underload_percent": {**_PERCENT, "description": "CPU load up to which a host is underloaded"},
                "overload_percent": {**_PERCENT, "description": "CPU load that no host is to reach"},
                "most_emptied": {**_COUNT, "description": "hosts that are emptied at most"},
                "most_migrations": {**_COUNT, "description": "servers that are migrated at most"},
                "least_awake": {**_COUNT, "description": "hosts that stay awake at least"},
            },
            "additionalProperties": False,
        }

    def _decide(
        self, service: MemoryService, hosts: Mapping[str, Document], left_out: dict[str, str]
    ) -> Mapping[str, int]:
        names = self.get_schema()["properties"]
        settings = {name: value for name, value in self.input_parameters.items() if name in names}
        told = service.post("plans", body={"afterwards": "suspend"} | settings | {"operation_id": str(uuid4())})
        plan = service.decided(told["uuid"])
        self._check_scope(service, plan, {item["name"] for item in hosts.values()})
        left_out.update(plan["left_out"])
        if plan["actions"]:
            self.solution.add_action(APPLY, resource_id=plan["uuid"])
        effect = plan["effect"]
        return {
            "released_compute_nodes_count": effect["hosts_emptied"],
            "woken_compute_nodes_count": effect["hosts_woken"],
            "instance_migrations_count": effect["migrations"],
            "gained_mib": effect["gained_mib"],
        }

    @staticmethod
    def _check_scope(service: MemoryService, plan: Document, inside: set[str]) -> None:
        changed = {
            name for action in plan["actions"] for name in (action["chain"], action["host"], action["destination"])
        }
        outside = sorted(changed - inside - {None})
        if not outside:
            return
        service.post("plans", plan["uuid"], "cancel", body={"operation_id": str(uuid4())})
        raise MemoryServiceError(
            f"plan {plan['uuid']} changes hosts outside of the audit's scope ({', '.join(outside)}), and was "
            "cancelled: audit without a scope, or use pondstack_idle_hosts"
        )
