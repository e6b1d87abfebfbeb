"""A strategy over Watcher's cluster model: idle nodes are drained and suspended, sleepers are woken ahead of need."""

from collections.abc import Iterable, Mapping
from typing import Any

from oslo_log import log

from pondstack.osc.client import Document
from pondstack_watcher.choice import Limits, Node, choose
from pondstack_watcher.service import MemoryService
from pondstack_watcher.strategy import MemoryStrategy

LOG = log.getLogger(__name__)

NAME = "pondstack_idle_hosts"
DRAIN, SUSPEND, WAKE = "pondstack_drain_host", "pondstack_suspend_host", "pondstack_wake_host"
DEFAULTS: dict[str, float | int] = {"reserve_percent": 20, "least_awake": 1, "most_suspended": 2, "most_servers": 0}


class IdleHostsStrategy(MemoryStrategy):
    """Idle hosts within the audit's scope.

    Nodes that are enabled and up are suspended, the emptiest first, while `reserve_percent` of the VCPUs and the memory
    of those awake stays free; where less is free, sleepers are woken, the least borrowed first.
    """

    display_name_text = "Idle hosts of the audit's scope lend their memory and sleep"

    @classmethod
    def get_name(cls) -> str:
        """Return the name of the entry point."""
        return NAME

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        """Return what may be set."""
        texts = {
            "reserve_percent": "VCPUs and memory of awake nodes that stay free, in percent",
            "least_awake": "nodes that stay awake at least",
            "most_suspended": "nodes that are suspended at most",
            "most_servers": "servers on a node up to which it is idle; they are migrated",
        }
        whole: dict[str, Any] = {"type": "integer", "minimum": 0}
        share: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 100}
        return {
            "properties": {
                name: (share if name == "reserve_percent" else whole)
                | {"description": texts[name], "default": DEFAULTS[name]}
                for name in DEFAULTS
            },
            "additionalProperties": False,
        }

    def _decide(
        self, service: MemoryService, hosts: Mapping[str, Document], left_out: dict[str, str]
    ) -> Mapping[str, int]:
        awake, asleep = self._nodes(hosts, service.borrowed_mib(), left_out)
        given = {name: self.input_parameters.get(name, default) for name, default in DEFAULTS.items()}
        found = choose(awake, asleep, Limits(**given))  # type: ignore[arg-type]
        if found.missing:
            LOG.warning("Less than %s %% is free, and no more nodes sleep", given["reserve_percent"])
        self._add(WAKE, found.wake)
        self._add(DRAIN, [node for node in found.suspend if node.servers])
        self._add(SUSPEND, found.suspend)
        gained = sum(int(node.capacity[1]) for node in found.suspend)
        return {
            "released_compute_nodes_count": len(found.suspend),
            "woken_compute_nodes_count": len(found.wake),
            "instance_migrations_count": sum(node.servers for node in found.suspend),
            "gained_mib": gained - sum(hosts[node.uuid]["sleep"]["lent_mib"] for node in found.wake),
        }

    def _nodes(
        self, hosts: Mapping[str, Document], borrowed: Mapping[str, int], left_out: dict[str, str]
    ) -> tuple[list[Node], list[Node]]:
        """Return those that are awake, and those that sleep."""
        awake, asleep = [], []
        for uuid, host in hosts.items():
            node = self._node(uuid, host["name"], borrowed)
            sleep = host["sleep"]
            reason = self._reason(uuid, host)
            if sleep is not None and sleep["state"] == "asleep":
                asleep.append(node)
            elif reason:
                left_out[host["name"]] = reason
            else:
                awake.append(node)
        return awake, asleep

    def _reason(self, uuid: str, host: Document) -> str:
        """Return why a host takes no part, "": it does."""
        node, sleep = self.compute_model.get_node_by_uuid(uuid), host["sleep"]
        if sleep is not None and sleep["ended_at"] is None:
            return f"it is {sleep['state']}"
        if host["fenced"] or not host["up"]:
            return "it is fenced" if host["fenced"] else "its agent is down"
        if node.status != "enabled" or node.state != "up":
            return f"its compute service is {node.status}, {node.state}: {node.disabled_reason or 'no reason given'}"
        return ""

    def _node(self, uuid: str, name: str, borrowed: Mapping[str, int]) -> Node:
        node = self.compute_model.get_node_by_uuid(uuid)
        used = self.compute_model.get_node_used_resources(node)
        return Node(
            uuid,
            name,
            (float(node.vcpu_capacity), float(node.memory_mb_capacity)),
            (float(used["vcpu"]), float(used["memory"])),
            len(self.compute_model.get_node_instances(node)),
            borrowed.get(name, 0),
        )

    def _add(self, action: str, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.solution.add_action(action, resource_id=node.uuid, input_parameters={"resource_name": node.name})
