"""Runs OpenStack Watcher's vm_workload_consolidation over a cloud from stdin, in a process of its own.

Prints one line of JSON: process seconds of the strategy alone, its migrations, and the hosts that it empties. Nothing
of ours is imported.
"""

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from oslo_config import cfg
from watcher.common import utils
from watcher.decision_engine.model import element, model_root
from watcher.decision_engine.strategy.strategies.vm_workload_consolidation import VMWorkloadConsolidation

DISK_GB = 10


class Metrics:
    """What Watcher asks its data source for."""

    def __init__(self, cloud: dict[str, Any]) -> None:
        self._servers = {uuid_of(uuid): (mib, percent) for uuid, _, _, mib, percent in cloud["servers"]}
        self._hosts = {name: load for name, _, _, _, load in cloud["hosts"]}

    def get_instance_cpu_usage(self, resource: Any, **_: Any) -> float:
        """Return percent of its vCPUs."""
        return float(self._servers[resource.uuid][1])

    def get_instance_ram_usage(self, resource: Any, **_: Any) -> float:
        """Return MiB."""
        return float(self._servers[resource.uuid][0])

    def get_instance_root_disk_size(self, **_: Any) -> float:
        """Return GB."""
        return DISK_GB

    def get_host_cpu_usage(self, node: Any, *_: Any) -> float:
        """Return percent."""
        return float(self._hosts[node.hostname])

    def get_host_ram_usage(self, *_: Any) -> None:
        """Return nothing: it is summed up of the instances."""
        return None


def uuid_of(name: str) -> str:
    """Return a UUID for a name."""
    return str(uuid5(NAMESPACE_OID, name))


def model_of(cloud: dict[str, Any]) -> model_root.ModelRoot:
    """Return the cloud as Watcher's compute model."""
    model, nodes = model_root.ModelRoot(), {}
    for name, cpus, mib, ratio, _ in cloud["hosts"]:
        nodes[name] = element.ComputeNode(
            uuid=uuid_of(name),
            hostname=name,
            memory=mib,
            memory_mb_reserved=0,
            memory_ratio=1.0,
            vcpus=cpus,
            vcpu_reserved=0,
            vcpu_ratio=ratio,
            disk=10**6,
            disk_gb_reserved=0,
            disk_ratio=1.0,
            status="enabled",
            state="up",
            disabled_reason=None,
        )
        model.add_node(nodes[name])
    project, created = uuid_of("project"), datetime.now(UTC)
    for uuid, host, vcpus, mib, _ in cloud["servers"]:
        instance = element.Instance(
            uuid=uuid_of(uuid),
            name=uuid,
            state="active",
            memory=mib,
            disk=DISK_GB,
            vcpus=vcpus,
            metadata={},
            project_id=project,
            host=host,
            hypervisor_hostname=host,
            created=created,
        )
        model.add_instance(instance)
        model.map_instance(instance, nodes[host])
    return model


def main() -> None:
    """Run it once."""
    logging.disable(logging.CRITICAL)
    cfg.CONF([], project="watcher")
    cloud = json.load(sys.stdin)
    strategy = VMWorkloadConsolidation(config=utils.Struct({"datasources": []}))
    strategy._compute_model = model_of(cloud)
    strategy._datasource_backend = Metrics(cloud)
    strategy.input_parameters = utils.Struct({"period": 300, "granularity": 60})
    begin = time.process_time()
    strategy.do_execute()
    seconds = time.process_time() - begin
    found = {
        "seconds": seconds,
        "migrations": strategy.number_of_migrations,
        "emptied": strategy.number_of_released_nodes,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
